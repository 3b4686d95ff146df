package contract

// Verdict lets the tests outside the package run a case that they expect to
// fail.
var Verdict = verdict
