package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A licence is known by words of its text, and by how NOTICE calls it.
type licence struct{ words, name string }

// All let a program under any terms contain the module. The Mozilla licence
// covers the module's own files, which is why NOTICE says where they are.
var known = []licence{
	{"Permission is hereby granted, free of charge, to any person obtaining a copy", "MIT License"},
	{"Redistribution and use in source and binary forms", "BSD 2-Clause License"}, // or 3
	{"Permission to use, copy, modify, and/or distribute this software", "ISC License"},
	{"Permission to use, copy, modify, and distribute this software", "ISC License"},
	{"Mozilla Public License, version 2.0", "Mozilla Public License, version 2.0"},
	{"Mozilla Public License Version 2.0", "Mozilla Public License, version 2.0"},
	{"Apache License Version 2.0, January 2004", "Apache License, version 2.0"},
}

// checkLicences holds NOTICE to the go.mod files, to the licences in the
// module cache, and to the foreign source in folders named vendor.
func checkLicences(root string) (wrong []string) {
	notice := read(root, "NOTICE")
	entries, used := noticeEntries(notice), map[requirement]bool{}
	for _, folder := range slices.DeleteFunc(modules(root), func(folder string) bool { return !forImport(folder) }) {
		for _, r := range requirements(filepath.Join(root, folder)) {
			used[r] = true
		}
	}
	for r := range used {
		if problem := checkEntry(moduleDir(root, r), entries[r.Path+" "+r.Version]); problem != "" {
			wrong = append(wrong, r.Path+" "+r.Version+": "+problem)
		}
	}
	for name := range entries {
		path, version, _ := strings.Cut(name, " ")
		if !used[requirement{path, version}] {
			wrong = append(wrong, name+": in NOTICE, but no module for users requires it")
		}
	}
	wrong = append(wrong, checkVendored(root, notice)...)
	slices.Sort(wrong)
	return wrong
}

// noticeEntries returns the paragraphs of NOTICE, by the module and version
// of their first lines.
func noticeEntries(notice string) map[string]string {
	entries := map[string]string{}
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(notice, "\r", ""), "\n\n") {
		head, rest, _ := strings.Cut(strings.TrimSpace(paragraph), "\n")
		if regexp.MustCompile(`^\S+ v\d\S*$`).MatchString(head) {
			entries[head] = rest
		}
	}
	return entries
}

// moduleDir is where the module cache holds a module; the first time it is
// downloaded.
func moduleDir(root string, r requirement) string {
	var m struct{ Dir string }
	try(json.Unmarshal(goCommand(root, nil, "mod", "download", "-json", r.Path+"@"+r.Version), &m))
	return m.Dir
}

func checkEntry(dir, entry string) (problem string) {
	licences, err := filepath.Glob(filepath.Join(dir, "[Ll][Ii][Cc][Ee][Nn][SsCc][Ee]*"))
	if err != nil || len(licences) == 0 {
		return "has no licence file"
	}
	switch name := licenceOf(read("", licences[0])); {
	case name == "":
		return "its licence is none of those that are known to be harmless"
	case entry == "":
		return "NOTICE lacks it, or this version (" + name + ")"
	case !strings.Contains(entry, name):
		return "NOTICE does not call its licence " + name
	}
	return ""
}

// licenceOf names the licence that comes first; others may follow for parts.
func licenceOf(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	name, first := "", len(text)
	for _, l := range known {
		if at := strings.Index(text, strings.ToLower(l.words)); at >= 0 && at < first {
			name, first = l.name, at
		}
	}
	if name == "BSD 2-Clause License" && strings.Contains(text[first:], "neither the name of") {
		return "BSD 3-Clause License"
	}
	return name
}

// checkVendored wants the path of each file in a folder named vendor in
// NOTICE.
func checkVendored(root, notice string) (wrong []string) {
	for _, file := range files(root, func(string) bool { return true }) {
		if strings.Contains("/"+file, "/vendor/") && !strings.Contains(notice, file) {
			wrong = append(wrong, file+": NOTICE does not say where it is from")
		}
	}
	return wrong
}
