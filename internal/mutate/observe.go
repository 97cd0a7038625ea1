// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

// observerMutations are bugs of a reader that doesn't consume.
var observerMutations = []mutation{
	{
		"ringbuf/observe.go", "an observer omits events that were overwritten while it copied them",
		"if ahead < r.pass.ahead {",
		"if false {",
	},
	{
		"ringbuf/commit.go", "an observer commits nothing",
		"\tcase r.mode == Observe:\n\t\treturn nil\n",
		"",
	},
	{
		"ringbuf/observe.go", "the slots show an observer that the agent has restarted",
		"case wrapped && !r.wroteToTheEnd(), !wrapped && s.read == 0 && r.checksum(0, r.seenTo) != r.seen:",
		"case wrapped && false:",
	},
	{
		"ringbuf/reader.go", "an observer reads a wrapped ring that it opens at once",
		"mode == Observe && h.WritePos >= h.ReadPos {",
		"mode == Observe {",
	},
}
