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

// byokSecretCases concern the stored key. That no answer shows it is checked
// on every answer of every case; here are the answers that come nearest to
// showing it, and the fingerprint.
func byokSecretCases() []testCase {
	const (
		never        = "The plaintext provider key is never returned."
		irreversible = "Non-reversible value for debugging or display"
	)
	return []testCase{
		{
			ID: "2.4/key-never-returned", Rule: never, Spends: Spend{Requests: 5, Creations: 1, BYOKSets: 2, WarmUps: 1},
			run: func(s *session) {
				s.call(setBYOK, byokBody(`"label":"work"`)).is(200)
				s.call(getBYOK, "").is(200)
				s.call(warmUp, `{"mode":"byok"}`).is(200)
				made := s.call(createAgent, llmBody(`"mode":"byok","provider":"openai","api_key":"`+providerKey+`"`)).is(200)
				s.call(readAgent.of(made.text("agent_id")), "").is(200)
			},
		},
		{
			ID: "2.4/key-not-in-errors", Rule: never, Spends: Spend{Requests: 5},
			run: func(s *session) {
				for _, body := range []string{
					`{"provider":"` + providerKey + `","api_key":"` + providerKey + `"}`,
					`{"provider":"openai","api_key":["` + providerKey + `"]}`,
					`{"provider":"openai","api_key":"` + providerKey + `"`,
				} {
					s.call(setBYOK, body).is(400)
				}
				s.call(createAgent, llmBody(`"api_key":"`+providerKey+`"`)).is(400)
				s.call(createAgent, llmBody(`"provider":"openai","api_key":{"`+providerKey+`":1}`)).is(400)
			},
		},
		{
			ID: "2.4/fingerprint", Rule: irreversible, Spends: Spend{Requests: 1, BYOKSets: 1},
			run: func(s *session) {
				set := s.call(setBYOK, setBYOK.body).is(200)
				found := legible(set.text("byok.fingerprint"))
				set.want(found == "", "the fingerprint shows %s", found)
			},
		},
		{
			ID: "fake/fingerprint-tells-keys-apart", Rule: "fingerprint is a keyed hash", Spends: Spend{Requests: 3, BYOKSets: 3},
			run: func(s *session) {
				first := s.call(setBYOK, setBYOK.body).is(200).text("byok.fingerprint")
				s.call(setBYOK, setBYOK.body).is(200).holds("byok.fingerprint", first)
				other := s.call(setBYOK, strings.Replace(setBYOK.body, providerKey, providerKey+"2", 1)).is(200)
				other.want(other.text("byok.fingerprint") != first, "two keys have this fingerprint")
			},
		},
		{
			ID: "fake/byok-updated-at", Rule: "ids, times: RFC 3339 UTC", Spends: Spend{Requests: 2, BYOKSets: 2, Wait: time.Hour},
			run: func(s *session) {
				first := s.call(setBYOK, setBYOK.body).is(200).time("byok.updated_at")
				s.wait(time.Hour)
				s.call(setBYOK, setBYOK.body).is(200).isAt("byok.updated_at", first.Add(time.Hour))
			},
		},
	}
}

// trace is a form of the provider key that a reader could turn back, and how
// many characters of it in a row are too many.
type trace struct {
	name, text string
	most       int
}

// legible says what of the provider key a reader could get back from the
// fingerprint, or "". It cannot prove a hash: it knows parts of the key, the
// usual encodings, characters moved by some places or masked, all that
// backwards too, and hashes without a secret, which a list of keys turns back.
func legible(fingerprint string) string {
	for _, t := range traces(strings.TrimPrefix(providerKey, "sk-contract")) {
		for i := range len(t.text) - t.most {
			if part := t.text[i : i+t.most+1]; strings.Contains(fingerprint, part) || strings.Contains(fingerprint, backwards(part)) {
				return t.name
			}
		}
	}
	return ""
}

func traces(key string) []trace {
	short, long := sha256.Sum256([]byte(providerKey)), sha512.Sum512([]byte(providerKey))
	all := []trace{{"a part of the key", key, 3}, {"the key in hexadecimal", hex.EncodeToString([]byte(key)), 7}}
	for i := range 3 { // base64 depends on where a group of three begins
		all = append(all, trace{"the key in base64", base64.RawURLEncoding.EncodeToString([]byte(providerKey[i:])), 7})
	}
	for _, sum := range [][]byte{short[:], long[:]} {
		for _, text := range []string{hex.EncodeToString(sum), base64.StdEncoding.EncodeToString(sum), base64.URLEncoding.EncodeToString(sum)} {
			all = append(all, trace{"a hash without a secret", text[:8], 7})
		}
	}
	for d := byte(1); d < 128; d++ {
		for _, move := range []func(byte) byte{func(c byte) byte { return c + d }, func(c byte) byte { return c ^ d }, turn(d % 26)} {
			all = append(all, trace{"the key, each character moved", mapped(key, move), 5})
		}
	}
	return all
}

// turn moves letters within the alphabet, as rot13 does by 13.
func turn(d byte) func(byte) byte {
	return func(c byte) byte {
		switch {
		case c >= 'a' && c <= 'z':
			return 'a' + (c-'a'+d)%26
		case c >= 'A' && c <= 'Z':
			return 'A' + (c-'A'+d)%26
		default:
			return c
		}
	}
}

func mapped(s string, f func(byte) byte) string {
	b := []byte(s)
	for i := range b {
		b[i] = f(b[i])
	}
	return string(b)
}

func backwards(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// time is the RFC 3339 time in UTC at a dotted path.
func (a answer) time(path string) time.Time {
	a.s.Helper()
	at, err := time.Parse(time.RFC3339Nano, a.text(path))
	a.want(err == nil, "member %q: %v", path, err)
	_, offset := at.Zone()
	a.want(offset == 0, "member %q is not UTC", path)
	return at
}

// isAt wants that time at a dotted path, to the minute: some targets have a
// clock that runs.
func (a answer) isAt(path string, want time.Time) {
	a.s.Helper()
	off := a.time(path).Sub(want).Abs()
	a.want(off < time.Minute, "member %q is %v from %v", path, off, want)
}
