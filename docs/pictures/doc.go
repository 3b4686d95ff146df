// Package pictures holds the pictures of the docs. It is a separate module, so that go
// get fetches the code without the pictures.
package pictures
