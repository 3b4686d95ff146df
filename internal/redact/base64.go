package redact

import (
	"encoding/base64"
	"slices"
	"strings"
)

// unpacked replaces what hides a secret as base64, in either alphabet: each run
// of letters that may hold one is decoded and looked into.
func (s Redactor) unpacked(text string) string {
	for begin := 0; begin < len(text); {
		end := begin
		for end < len(text) && isBase64(text[end]) {
			end++
		}
		if base64.RawStdEncoding.DecodedLen(end-begin) >= minSecret && s.hides(text[begin:end]) {
			text = text[:begin] + Redacted + strings.TrimLeft(text[end:], "=")
			end = begin + len(Redacted)
		}
		begin = end + 1
	}
	return text
}

// hides looks into a run from each of its first four bytes, since other letters
// may precede the base64 without a gap.
func (s Redactor) hides(run string) bool {
	if !slices.ContainsFunc(s.secrets[:], func(secret string) bool { return mayBegin(secret, run) }) {
		return false
	}
	var room [2][64]byte // enough for the ids that most runs are
	packed := append(room[0][:0], run...)
	for i, c := range packed { // of either alphabet
		switch c {
		case '-':
			packed[i] = '+'
		case '_':
			packed[i] = '/'
		}
	}
	for skip := range min(4, len(packed)) {
		rest := packed[skip:]
		if len(rest)%4 == 1 {
			rest = rest[:len(rest)-1]
		}
		decoded, _ := base64.RawStdEncoding.AppendDecode(room[1][:0], rest)
		if text := string(decoded); s.plain(text) != text {
			return true
		}
	}
	return false
}

// mayBegin reports that a run may hold how the secret begins. A byte may begin at
// every second bit of a run, since a letter has six bits and a byte eight.
func mayBegin(secret, run string) bool {
	if len(secret) < minSecret || base64.RawStdEncoding.DecodedLen(len(run)) < len(secret) {
		return false
	}
	var head, mask, bits uint64
	for _, c := range []byte(startOf(secret)) {
		head, mask = head<<8|uint64(c), mask<<8|0xff
	}
	for i := range len(run) {
		bits = bits<<6 | uint64(sextets[run[i]])
		if bits&mask == head || bits>>2&mask == head || bits>>4&mask == head {
			return true
		}
	}
	return false
}

// sextets are the six bits of each base64 letter, in either alphabet; any other
// byte maps to 0xff.
var sextets = func() (of [256]byte) {
	for c := range of {
		of[c] = 0xff
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		of[c] = byte(i)
	}
	of['-'], of['_'] = of['+'], of['/']
	return of
}()

func isBase64(c byte) bool { return sextets[c] < 64 }

// without replaces all spellings of a secret. No spelling is shorter than the
// secret, and each but the secret itself has an escape. So most texts need no search.
func without(text, secret string) string {
	if len(secret) < minSecret || len(text) < len(secret) || !strings.Contains(text, startOf(secret)) {
		return text
	}
	if !strings.ContainsAny(text, `\%+`) {
		return strings.ReplaceAll(text, secret, Redacted)
	}
	for _, form := range formsOf(secret) {
		text = strings.ReplaceAll(text, form, Redacted)
	}
	return text
}

// startOf is how every spelling begins: with letters and digits, which are never
// escaped.
func startOf(secret string) string {
	end := 0
	for end < min(len(secret), maxStart) && isBase64(secret[end]) && secret[end] != '+' && secret[end] != '/' {
		end++
	}
	return secret[:end]
}

// maxStart is how many bytes fit into 64 bits wherever mayBegin finds them.
const maxStart = 7
