// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

// foundBy names the tests that find the bugs that the simulation doesn't find, by rule. Without
// an entry, all tests of the packages run.
var foundBy = map[string]string{
	// ringbuf
	"a push while the read position is 0 proves nothing":                                      "TestAgentPausedDuringRestart",
	"at position 0, changed slots show a restart":                                             "TestAgentPausedDuringRestart",
	"the end of the ring is remembered, not its start":                                        "TestAgentPausedDuringRestart",
	"a commit from position 0 is undone after a restart":                                      "TestSwapFromZeroIsUndoneAfterARestart",
	"a commit to position 0 is not undone":                                                    "TestSwapToZeroLeavesTheResetOfARestart",
	"a commit from position 0 checks whether the agent has restarted":                         "TestSwapFromZeroIsUndoneAfterARestart",
	"zeros at the end of a file that was extended are no events":                              "TestZeroedTailIsNotRead",
	"a commit remembers the position before it":                                               "TestForeignReaderMovesForwardBeforeALap",
	"a read position that another consumer moved backward skips nothing":                      "TestForeignReaderMovesBackward",
	"a read position of a pending event is not before it":                                     "TestForeignReaderReadsAfterARestart",
	"a commit checks the slots that were read":                                                "TestCommitFromZeroFailsAfterARunThatFillsTheRing",
	"a fingerprint is only of slots that were read":                                           "TestFingerprintFailsAfterARestart",
	"an idle ring has the committed read position":                                            "TestIdleMeansThatAReadFindsNothing",
	"slots of a file of another size may have been written":                                   "TestRingOfAnotherSizeMayHaveDiscardedEvents",
	"the change time at the end of the ring is remembered":                                    "TestMemoryAfterARestartAtPosition0IsUnknownRatherThanWrong",
	"a changed file with equal events is another run":                                         "FuzzResume",
	"events that another consumer took are already counted only if their slots are unchanged": "FuzzResume",

	// checkpoint
	"a checkpoint is of one file":                                "TestResumeCountsEveryEventOnce",
	"a checkpoint is of one capacity":                            "TestResumeCountsEveryEventOnce",
	"changed slots are another run":                              "TestResumeCountsEveryEventOnce",
	"a ring that is opened again is committed only after a save": "TestResumeCountsEveryEventOnce",
	"a checkpoint that is about to be removed is not loaded":     "TestForgottenKeyIsRemovedWithItsQueuedSaves",
	"a new save keeps a forgotten checkpoint":                    "TestForgottenKeyIsRemovedWithItsQueuedSaves",
	"the sweep waits for stale_after":                            "TestOnlyUnusedKeysAreSwept",
	"an index that was not read is not overwritten":              "TestUnreadableIndexIsNotOverwritten",
}
