package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// checkDependabot holds .github/dependabot.yml to the folders with a go.mod or
// a package.json, both ways.
func checkDependabot(root string) (wrong []string, err error) {
	text, err := os.ReadFile(filepath.Join(root, ".github", "dependabot.yml"))
	if err != nil {
		return nil, err
	}
	listed := dependabotFolders(string(text))
	for ecosystem, base := range map[string]string{"gomod": "go.mod", "npm": "package.json"} {
		folders, err := foldersOf(root, base)
		if err != nil {
			return nil, err
		}
		for i := range folders {
			folders[i] = "/" + strings.TrimPrefix(folders[i], ".")
		}
		for _, folder := range folders {
			if !slices.Contains(listed[ecosystem], folder) {
				wrong = append(wrong, ".github/dependabot.yml lacks "+ecosystem+" "+folder)
			}
		}
		for _, folder := range listed[ecosystem] {
			if !slices.Contains(folders, folder) {
				wrong = append(wrong, ".github/dependabot.yml: no "+base+" in "+folder)
			}
		}
	}
	slices.Sort(wrong)
	return wrong, nil
}

var (
	ecosystemLine = regexp.MustCompile(`^\s*- package-ecosystem: (\S+)`)
	folderLine    = regexp.MustCompile(`^\s*(?:-|directory:) (/\S*)$`)
)

// dependabotFolders reads what the file of this repository is made of: one
// folder a line, below the ecosystem. It knows no other YAML.
func dependabotFolders(text string) map[string][]string {
	listed := map[string][]string{}
	ecosystem := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if m := ecosystemLine.FindStringSubmatch(line); m != nil {
			ecosystem = m[1]
		}
		if m := folderLine.FindStringSubmatch(line); m != nil {
			listed[ecosystem] = append(listed[ecosystem], m[1])
		}
	}
	return listed
}
