package main

import "errors"

// lockSuffix ends the name of the file that one program holds locked for its state.
const lockSuffix = ".lock"

// errLocked says that the lock is taken. Two programs on one state would each lose what
// the other has saved.
var errLocked = errors.New("another agentmessaging-fake uses this file; give each its own, or remove " +
	"the file of the same name that ends in " + lockSuffix + " if that program is gone")
