// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

// checkpointMutations are bugs of the decision to resume a ring, and of the saver's queue.
var checkpointMutations = []mutation{
	{
		"internal/engine/internal/checkpoint/resume.go", "a read position of 0 is a restart unless 0 is stored",
		"\tcase at == 0:\n\t\treturn Restarted, nil\n",
		"",
	},
	{
		"internal/engine/internal/checkpoint/resume.go", "changed slots are another run",
		"case sum != m.Fingerprint, ",
		"case sum == 0 && sum != m.Fingerprint, ",
	},
	{
		"internal/engine/internal/checkpoint/resume.go", "events that another consumer took are already counted only if their slots are unchanged",
		"return err == nil && sum == m.Suffixes[i]",
		"return err == nil && sum != sum+1",
	},
	{
		"internal/engine/internal/checkpoint/resume.go", "a checkpoint is of one file",
		"m.Dev != dev, m.Ino != ino:",
		"m.Dev != m.Dev+0*dev+0*ino:",
	},
	{
		"internal/engine/internal/checkpoint/resume.go", "a checkpoint is of one capacity",
		"m.Capacity != uint64(r.Capacity()), ",
		"",
	},
	{
		"internal/engine/internal/checkpoint/resume.go", "a restart at the end of the ring is also looked for after a crash",
		"\t\tr.Continue(m.Changed)\n\t\treturn Resumed, nil\n",
		"\t\treturn Resumed, nil\n",
	},
	{
		"internal/engine/internal/checkpoint/resume.go", "a ring that is opened again is committed only after a save",
		"\tr.Continue(m.Changed)\n\treturn true, nil",
		"\tr.Continue(m.Changed)\n\treturn true, r.Commit()",
	},
	{
		"internal/engine/internal/checkpoint/resume.go", "the change time of skipped events is kept",
		"\tr.Continue(m.Changed)\n\treturn true, nil",
		"\treturn true, nil",
	},
	{
		"internal/engine/internal/checkpoint/resume.go", "only an earlier process can have committed position 0",
		"case at == m.To && (at != 0 || m.From == 0 || m.Loaded):",
		"case at == m.To:",
	},
	{
		"internal/engine/internal/checkpoint/resume.go", "events that an agent writes while the slots are compared are not skipped",
		"if sum, err = r.Fingerprint(m.From, m.To); err == nil && sum != m.Fingerprint {",
		"if false {",
	},
	{
		"internal/engine/internal/checkpoint/resume.go", "only events that were written before the comparison are skipped",
		"m.To >= m.Capacity || held > pending {",
		"m.To >= m.Capacity {",
	},
	{
		"internal/engine/internal/checkpoint/queue.go", "a checkpoint that is about to be removed is not loaded",
		"if q.garbage[c.Key] {",
		"if false {",
	},
	{
		"internal/engine/internal/checkpoint/queue.go", "a new save keeps a forgotten checkpoint",
		"\t\tdelete(q.garbage, op.Key)\n",
		"",
	},
	{
		"internal/engine/internal/checkpoint/queue.go", "the sweep removes only checkpoints that are not used",
		"q.index.except(q.wanted)",
		"q.index.except(nil)",
	},
	{
		"internal/engine/internal/checkpoint/queue.go", "the sweep waits for stale_after",
		"q.index.read && !now.Before(q.sweepAt)",
		"q.index.read",
	},
	{
		"internal/engine/internal/checkpoint/queue.go", "an index that was not read is not overwritten",
		"if !x.read || x.stored && !changes {",
		"if x.stored && !changes {",
	},
}
