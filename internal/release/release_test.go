package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newRoot makes a repository of the given files.
func newRoot(t *testing.T, texts map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range texts {
		file := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return root
}

func TestLinks(t *testing.T) {
	for link, want := range map[string]string{
		"other.md":               "",
		"../docs/other.md":       "",
		"other.md#a-heading":     "",
		"other.md#a-heading-1":   "",
		"#the-fakes-own-url":     "",
		"https://example.com/#x": "",
		"gone.md":                "there is no such file",
		"other.md#gone":          "there is no such heading",
		"other.md#in-code":       "there is no such heading",
		"/docs/other.md":         "begins with a slash",
		"http://example.com":     "is not https",
		"https://localhost/":     "is no public address",
		"https://example.com:1/": "is no public address",
	} {
		root := newRoot(t, map[string]string{
			"docs/page.md":  "## The fake's `own` [URL](other.md)\n[text](" + link + ")\n",
			"docs/other.md": "# A heading\n# A heading\n```sh\n# in code\n[text](gone.md)\n```\n`[text](gone.md)`\n",
		})
		wrong := checkLinks(root)
		if want == "" {
			assert.Empty(t, wrong, link)
			continue
		}
		assert.Equal(t, []string{"docs/page.md: " + link + ": " + want}, wrong)
	}
}

func TestLicenceOf(t *testing.T) {
	bsd := "Redistribution and use in source and\nbinary forms, with or without modification,"
	for text, want := range map[string]string{
		"Permission is hereby granted, free of charge, to any\nperson obtaining a copy": "MIT License",
		bsd:                                   "BSD 2-Clause License",
		bsd + " Neither the name of":          "BSD 3-Clause License",
		"Mozilla Public License, version 2.0": "Mozilla Public License, version 2.0",
		"Mozilla Public License Version 2.0":  "Mozilla Public License, version 2.0",
		"Permission to use, copy, modify, and distribute this software":        "ISC License",
		"Permission to use, copy, modify, and/or distribute this software for": "ISC License",
		"GNU GENERAL PUBLIC LICENSE, Version 3":                                "",
		"Apache License\n Version 2.0, January 2004\n" + bsd:                   "Apache License, version 2.0",
	} {
		assert.Equal(t, want, licenceOf(text))
	}
}

func TestNoticeEntries(t *testing.T) {
	dir := newRoot(t, map[string]string{"LICENSE": "Mozilla Public License, version 2.0"})
	entries := noticeEntries("About\n\n  a.example/m v1.2.3\n    Somebody\n    MIT License\n")
	require.Contains(t, entries, "a.example/m v1.2.3")
	assert.NotEmpty(t, checkEntry(dir, entries["a.example/m v1.2.3"]), "called by another name")
	assert.NotEmpty(t, checkEntry(dir, ""), "not in NOTICE")
	assert.Empty(t, checkEntry(dir, "Mozilla Public License, version 2.0"))
	assert.NotEmpty(t, checkEntry(t.TempDir(), "Mozilla Public License, version 2.0"), "no licence file")
}

func TestVendored(t *testing.T) {
	root := newRoot(t, map[string]string{"page/vendor/known.js": "", "page/vendor/unknown.js": ""})
	wrong := checkVendored(root, "page/vendor/known.js")
	assert.Equal(t, []string{"page/vendor/unknown.js: NOTICE does not say where it is from"}, wrong)
}
