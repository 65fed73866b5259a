//go:build !unix

package app

func boundFiles() {}
