// Package modules has no code of its own, only a test of what comes along with
// this module to a program that imports parts of it, and to the Collectors that
// are built of it.
package modules
