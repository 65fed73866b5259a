// Package library has the code of docs/go.md in its test, so that it compiles and
// does what is said there: evalrun as a library, from one call to a run.
package library
