// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

// foundBy names the tests that find the bugs that the simulation doesn't find, by rule. Without
// an entry, all tests of the packages run.
var foundBy = map[string]string{
	"a checkpoint is of one file":                                "TestResumeCountsEveryEventOnce",
	"a checkpoint is of one capacity":                            "TestResumeCountsEveryEventOnce",
	"changed slots are another run":                              "TestResumeCountsEveryEventOnce",
	"a ring that is opened again is committed only after a save": "TestResumeCountsEveryEventOnce",
	"a checkpoint that is about to be removed is not loaded":     "TestForgottenKeyIsRemovedWithItsQueuedSaves",
	"a new save keeps a forgotten checkpoint":                    "TestForgottenKeyIsRemovedWithItsQueuedSaves",
	"the sweep waits for stale_after":                            "TestOnlyUnusedKeysAreSwept",
	"an index that was not read is not overwritten":              "TestUnreadableIndexIsNotOverwritten",
}
