package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// checkLintReasons wants a comment "# CHECK: reason" for each check that
// staticcheck.conf turns off. A //lint:ignore without a reason is reported by
// staticcheck itself.
func checkLintReasons(root string) (wrong []string, err error) {
	text, err := os.ReadFile(filepath.Join(root, "staticcheck.conf"))
	if err != nil {
		return nil, err
	}
	for _, off := range regexp.MustCompile(`"-(\w+)"`).FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(string(text), "# "+off[1]+": ") {
			wrong = append(wrong, "staticcheck.conf: no reason for "+off[1])
		}
	}
	return wrong, nil
}
