package service

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

// vault encrypts provider keys under its own key: the service stores them
// encrypted and never returns them (interface 2.4). Nothing decrypts one here,
// since no provider is called.
type vault struct {
	aead   cipher.AEAD
	macKey []byte
}

func newVault() *vault {
	block, err := aes.NewCipher(randomBytes(32)) // AES-256
	if err != nil {
		panic(err) // only a wrong key length fails
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // only a wrong block size fails
	}
	return &vault{aead: aead, macKey: randomBytes(32)}
}

// seal returns the nonce, followed by the encrypted plaintext.
func (v *vault) seal(plaintext string) []byte {
	nonce := randomBytes(v.aead.NonceSize())
	return v.aead.Seal(nonce, nonce, []byte(plaintext), nil)
}

// fingerprintBytes gives a fingerprint 16 hexadecimal digits: enough to tell
// keys apart, too few to rebuild one.
const fingerprintBytes = 8

// fingerprint is a keyed hash, so that nobody outside can confirm a guessed key.
func (v *vault) fingerprint(plaintext string) string {
	mac := hmac.New(sha256.New, v.macKey)
	mac.Write([]byte(plaintext))
	return hex.EncodeToString(mac.Sum(nil)[:fingerprintBytes])
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: it ends the program instead
	return b
}
