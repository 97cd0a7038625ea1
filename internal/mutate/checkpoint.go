// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

// checkpointMutations are bugs of the decision to resume a ring, and of the pages of checkpoints.
var checkpointMutations = []mutation{
	{
		"internal/engine/internal/checkpoint/resume.go", "a read position of 0 is a restart unless 0 is stored",
		"\tcase at == 0:\n\t\treturn Restarted, nil\n",
		"",
	},
	{
		"internal/engine/internal/checkpoint/resume.go", "changed slots are another run",
		"return err == nil && sum == m.Fingerprint, err",
		"return err == nil && (sum == m.Fingerprint || m.From == 0), err",
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
		"internal/engine/internal/checkpoint/resume.go", "a ring that is opened again is committed only after a save",
		"\t\treturn false, err\n\t}\n\treturn true, nil",
		"\t\treturn false, err\n\t}\n\treturn true, r.Commit()",
	},
	{
		"internal/engine/internal/checkpoint/resume.go", "events that an agent writes while the slots are compared are not skipped",
		"if still, err := same(); err == nil && !still {",
		"if still, err := same(); err != nil && !still {",
	},
	{
		"internal/engine/internal/checkpoint/resume.go", "only events that were written before a resume are skipped",
		"m.held(m.From) > pending",
		"false",
	},
	{
		"internal/engine/internal/checkpoint/resume.go", "only events that were written before the comparison are skipped",
		"held < m.held(m.From) && held <= pending",
		"held < m.held(m.From)",
	},
	{
		"internal/engine/internal/checkpoint/pages.go", "entries are kept until stale_after",
		"if p.until.IsZero() || now.Before(p.until) {",
		"if p.until.IsZero() {",
	},
	{
		"internal/engine/internal/checkpoint/pages.go", "an entry whose agent has appeared is kept",
		"\tl.waits = false\n",
		"",
	},
	{
		"internal/engine/internal/checkpoint/pages.go", "the entry of a retired agent is removed",
		"\tdelete(p.pages[i], valid(id))\n",
		"",
	},
	{
		"internal/engine/internal/checkpoint/resume.go", "a commit to position 0 stops at the last slot",
		"at != m.From && at == m.Capacity-1:",
		"at != m.From && at == m.Capacity:",
	},
	{
		"internal/engine/internal/checkpoint/resume.go", "a read position of 0 is a restart, unless nothing was committed",
		"case at == m.To && (at != 0 || m.From == 0 || m.Capacity == 2):",
		"case at == m.To:",
	},
	{
		"internal/engine/internal/checkpoint/resume.go", "only a position between those of the checkpoint is one of its run",
		"held < m.held(m.From) && held <= pending",
		"held <= pending",
	},
}
