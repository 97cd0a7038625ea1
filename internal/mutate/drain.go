// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

// ownerMutations are bugs of the owner.
var ownerMutations = []mutation{
	{
		"internal/engine/internal/drain/save.go", "a save is valid only for its generation",
		"if a.reader == nil || a.generation != t.generation {",
		"if a.reader == nil {",
	},
	{
		"internal/engine/internal/drain/agent.go", "a commit without a save begins a generation",
		"\ta.generation++\n\treturn a.reader.Commit()",
		"\treturn a.reader.Commit()",
	},
	{
		"internal/engine/internal/drain/agent.go", "a ring that is attached begins a generation",
		"\ta.generation++\n\ta.reader, a.reopenAt",
		"\ta.reader, a.reopenAt",
	},
	{
		"internal/engine/internal/drain/read.go", "another consumer begins a generation",
		"\t\ta.generation++ // the positions of the current save no longer apply\n",
		"",
	},
	{
		"internal/engine/internal/drain/agent.go", "totals whose ring was detached are stored",
		"a.reader, a.heldSince, a.dirty = nil, time.Time{}, true",
		"a.reader, a.heldSince = nil, time.Time{}",
	},
	{
		"internal/engine/internal/drain/save.go", "a save that failed is repeated",
		"\t\t\tt.agent.dirty = true\n",
		"\t\t\t_ = t\n",
	},
	{
		"internal/engine/internal/drain/save.go", "totals that were committed without a checkpoint are stored",
		"\t\ta.dirty = true\n\t\terr := a.commit()",
		"\t\terr := a.commit()",
	},
	{
		"internal/engine/internal/drain/save.go", "totals are stored again after a commit from position 0",
		"\ta.dirty = a.dirty || a.reader.Committed() == 0 && t.to != 0\n",
		"",
	},
	{
		"internal/engine/internal/drain/open.go", "totals are stored again after a commit from position 0 that a crash prevented",
		"\t\ta.dirty = a.dirty || stored.From == 0 && stored.To != 0 // as after a commit\n",
		"\t\t_ = stored\n",
	},
	{
		"internal/engine/internal/drain/save.go", "a ring is not committed without a checkpoint before a save is slow",
		"if o.failing || o.batch != nil && o.batch.waited >= slowSave {",
		"if o.failing || o.batch != nil {",
	},
	{
		"internal/engine/internal/drain/save.go", "a save that hangs is reported",
		"if b.reported || now.Sub(b.began) < hungSave {",
		"if b.reported || now.Sub(b.began) > 0 {",
	},
	{
		"internal/engine/internal/drain/save.go", "a save hangs only after 5 seconds",
		"if b.reported || now.Sub(b.began) < hungSave {",
		"if b.reported || now.Sub(b.began) < hungSave/5 {",
	},
	{
		"internal/engine/internal/drain/save.go", "events are held for at most a second",
		"now.Sub(a.heldSince) >= saveEvery",
		"now.Sub(a.heldSince) >= time.Hour",
	},
	{
		"internal/engine/internal/drain/save.go", "changed totals are stored soon",
		" >= saveEvery), a.dirty:",
		" >= saveEvery):",
	},
	{
		"internal/engine/internal/drain/save.go", "a checkpoint has all events that were read",
		"to: m.To})",
		"to: a.reader.Position() + 0*m.To})",
	},
	{
		"internal/engine/internal/drain/retire.go", "an agent is retired only without events in its ring",
		"\t\tif a.held() > 0 {\n\t\t\t// Without",
		"\t\tif false {\n\t\t\t// Without",
	},
	{
		"internal/engine/internal/drain/retire.go", "an agent is retired only after its last events are delivered",
		"return now.Sub(a.lastEvent) >= o.cfg.StaleAfter && a.delivered == a.news",
		"return now.Sub(a.lastEvent) >= o.cfg.StaleAfter",
	},
	{
		"internal/engine/internal/drain/retire.go", "an agent is retired only after stale_after",
		"now.Sub(a.lastEvent) >= o.cfg.StaleAfter && ",
		"",
	},
	{
		"internal/engine/internal/drain/retire.go", "a running agent is not retired",
		"if a.reader != nil && !a.exit.complete() || !o.silent(a, now) {",
		"if !o.silent(a, now) {",
	},
	{
		"internal/engine/internal/drain/retire.go", "an agent with unread events does not give way to another one",
		"empty := a.reader == nil || a.reader.Idle()",
		"empty := a.reader == nil || a.reader.Committed() >= 0",
	},
	{
		"internal/engine/internal/drain/retire.go", "a ring is closed only after its events are stored",
		"a.exit.gone.IsZero() || a.held() > 0 || !a",
		"a.exit.gone.IsZero() || !a",
	},
	{
		"internal/engine/internal/drain/retire.go", "the position of a closed ring is kept",
		"\t\ta.resume = &m // the agent's next run may use the same file\n",
		"\t\t_ = m\n",
	},
	{
		"internal/engine/internal/drain/read.go", "the position of a ring that can not be read is kept",
		"\t\ta.resume = &m\n",
		"\t\t_ = m\n",
	},
	{
		"internal/engine/internal/drain/read.go", "a ring that can not be read is opened again",
		"\ta.reopenAt = now.Add(brokenWait)\n",
		"",
	},
	{
		"internal/engine/internal/drain/read.go", "an agent is not retired while its ring is opened again",
		"\ta.heard(now) // so that the agent isn't retired before its ring is open again\n",
		"",
	},
	{
		"internal/engine/internal/drain/open.go", "a ring is moved to the position of its checkpoint",
		"\t\ta.resume, a.dirty = &e.Mark, a.dirty || err != nil\n\t\ta.resume.Start = a.start.UnixNano()\n",
		"",
	},
	{
		"internal/engine/internal/drain/open.go", "a restart since the checkpoint is counted",
		"\t\to.countRestart(a, notice.RingRestart, text)\n",
		"\t\t_ = text\n",
	},
	{
		"internal/engine/internal/drain/open.go", "the old file of a replaced ring is drained",
		"\to.drainOut(a, now)\n\tif a.reader == nil {",
		"\tif a.reader == nil {",
	},
	{
		"internal/engine/internal/drain/open.go", "another running agent of the same ID is refused",
		"case m.Agent.Path != a.Path && a.busy():",
		"case m.Agent.Path != a.Path && a.busy() && now.IsZero():",
	},
	{
		"internal/engine/internal/drain/read.go", "without a store, events are committed at once, and otherwise after the save",
		"if err == nil && !o.saves {",
		"if err == nil {",
	},
	{
		"internal/engine/internal/drain/exit.go", "a ring with unread events is not complete",
		"\tcase empty && e.empty.IsZero():\n",
		"\tcase e.empty.IsZero():\n",
	},
	{
		"internal/engine/internal/drain/exit.go", "an agent that writes again has not exited",
		"\t\t*e = exit{} // until the kernel is asked again\n",
		"\t\te.empty = now\n",
	},
	{
		"internal/engine/internal/drain/collect.go", "a collection is answered at its deadline",
		"if !hung && now.Before(c.deadline) {",
		"if !hung || now.Before(c.deadline) {",
	},
	{
		"internal/engine/internal/drain/save.go", "a collection waits until its totals are stored",
		"o.waiting, b.collects = o.waiting[1:], []*collect{c}",
		"o.waiting = o.waiting[1:]\n\t\t\to.env.reply(c)",
	},
	{
		"internal/engine/internal/drain/collect.go", "a collection drains all rings first",
		"\t\to.drainAll(now)\n",
		"",
	},
	{
		"internal/engine/internal/drain/read.go", "another consumer is reported",
		"\t\to.report(a, warn(notice.RingForeign, \"another",
		"\t\to.report(a, warn(notice.RingOpened, \"another",
	},
}
