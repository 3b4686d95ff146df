package contract

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// secrets concerns the stored key. That no answer shows it is checked on
// every answer of every case; here are the answers that come nearest to
// showing it, and the fingerprint.
func (s *suite) secrets() {
	const never = "The plaintext provider key is never returned."
	second := setBYOK.with(strings.Replace(setBYOK.body, providerKey, providerKey+"2", 1))
	s.rule("2.4/key-never-returned", never,
		setBYOK.with(byokBody(`"label":"work"`)).is(200), getBYOK.is(200), byokWarmUp.is(200),
		createAgent.with(llmBody(`"mode":"byok",`+ownKey)).is(200), readAgent.is(200))
	s.rule("2.4/key-not-in-errors", never,
		setBYOK.with(`{"provider":"`+providerKey+`","api_key":"`+providerKey+`"}`).is(400),
		setBYOK.with(`{"provider":"openai","api_key":["`+providerKey+`"]}`).is(400),
		setBYOK.with(`{"provider":"openai","api_key":"`+providerKey+`"`).is(400),
		createAgent.with(llmBody(`"api_key":"`+providerKey+`"`)).is(400),
		createAgent.with(llmBody(`"provider":"openai","api_key":{"`+providerKey+`":1}`)).is(400))
	s.rule("2.4/fingerprint", "Non-reversible value for debugging or display", setBYOK.is(200).holds("byok.fingerprint", irreversible))
	s.rule("fake/fingerprint-tells-keys-apart", "fingerprint is a keyed hash",
		setBYOK.is(200), setBYOK.is(200).holds("byok.fingerprint", same), second.is(200).holds("byok.fingerprint", differs))
	s.rule("fake/byok-updated-at", "ids, times: RFC 3339 UTC",
		setBYOK.is(200), wait(time.Hour), setBYOK.is(200).holds("byok.updated_at", later(time.Hour)))
}

// irreversible says what of the provider key a reader could get back from the
// fingerprint, or "". It cannot prove a hash: it knows parts of the key, the
// usual encodings, characters moved by some places or masked, all that
// backwards too, and hashes without a secret, which a list of keys turns back.
func irreversible(fingerprint any) string {
	shown, _ := fingerprint.(string)
	for text, most := range traces(strings.TrimPrefix(providerKey, "sk-contract")) {
		for i := range len(text) - most {
			if part := text[i : i+most+1]; strings.Contains(shown, part) || strings.Contains(shown, backwards(part)) {
				return "it shows a part of the key, or of a form of it that a reader can turn back"
			}
		}
	}
	return ""
}

// traces are forms of the provider key that a reader could turn back, and how
// many characters of each in a row are no trace yet.
func traces(key string) map[string]int {
	all := map[string]int{hex.EncodeToString([]byte(key)): 7}
	for i := range 3 { // base64 depends on where a group of three begins
		all[base64.RawURLEncoding.EncodeToString([]byte(providerKey[i:]))] = 7
	}
	short, long := sha256.Sum256([]byte(providerKey)), sha512.Sum512([]byte(providerKey))
	for _, sum := range [][]byte{short[:], long[:]} {
		all[hex.EncodeToString(sum)] = 7
		all[base64.StdEncoding.EncodeToString(sum)] = 7
		all[base64.URLEncoding.EncodeToString(sum)] = 7
	}
	for d := range rune(128) {
		for _, move := range []func(rune) rune{func(c rune) rune { return c + d }, func(c rune) rune { return c ^ d }, turn(d)} {
			all[strings.Map(move, key)] = 5
		}
	}
	all[key] = 3
	return all
}

// turn moves letters within the alphabet, as rot13 does by 13.
func turn(d rune) func(rune) rune {
	return func(c rune) rune {
		for _, first := range "aA" {
			if c >= first && c < first+26 {
				return first + (c-first+d)%26
			}
		}
		return c
	}
}

func backwards(s string) string {
	b := []rune(s)
	slices.Reverse(b)
	return string(b)
}
