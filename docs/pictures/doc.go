// Package pictures holds the pictures of the docs in a module of their own, so
// that go get fetches the code without them.
package pictures
