// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

// foundBy names the tests that find the bugs that the simulation doesn't find, by rule. Without
// an entry, all tests of the packages run.
var foundBy = map[string]string{
	// ringbuf
	"a write position of 0 is believed after a second":                   "TestRingThatWrapsToZeroIsReadAfterASecond",
	"each ambiguous header must last for a second":                       "TestEachAmbiguousHeaderLastsForASecond",
	"at position 0, changed slots show a restart":                        "TestAgentPausedDuringRestart",
	"a read position that another consumer moved backward skips nothing": "TestForeignReaderMovesBackward",
	"an observer reads a wrapped ring that it opens at once":             "TestObserverReadsAWrappedRingAtOnce",

	// drain
	"an agent that writes again has not exited": "TestAgentThatWritesAgainHasNotExited",

	// checkpoint
	"events that an agent writes while the slots are compared are not skipped": "TestEventsThatARestartedAgentWritesDuringResumeAreNotSkipped",
	"only events that were written before the comparison are skipped":          "TestEventsThatAreWrittenDuringResumeAreNotSkipped",
	"a checkpoint is of one file":                                              "TestResumeCountsEveryEventOnce",
	"a ring that is opened again is committed only after a save":               "TestResumeCountsEveryEventOnce",
}

// seedOf names seeds that find bugs that few seeds find, by rule. They run before the others.
var seedOf = map[string]uint64{
	"a position beyond the last slot is loaded again": 502653,
}
