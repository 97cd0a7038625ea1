// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

// ringMutations are bugs of the reader.
var ringMutations = []mutation{
	{
		"ringbuf/restart.go", "a consumer opens a ring in the ambiguous state only once its file is a second old",
		"if mode == Consume && state.Age < settleTime {",
		"if mode == Consume && state.Age < 0 {",
	},
	{
		"ringbuf/restart.go", "another version or capacity is a restart",
		"\tif !r.is(r.layout.Version(), r.mask+1) {\n\t\t\treturn state{}, ErrRestarted",
		"\tif false {\n\t\t\treturn state{}, ErrRestarted",
	},
	{
		"ringbuf/restart.go", "a push while the read position is 0 proves nothing",
		"(s.read != 0 || r.committed == 0 && r.next == 0)",
		"true",
	},
	{
		"ringbuf/restart.go", "a write position of 0 is no push",
		"if s.write != 0 && s.write != r.lastWrite",
		"if s.write != r.lastWrite",
	},
	{
		"ringbuf/restart.go", "another read position is a restart or another consumer",
		"\tif s.read != r.committed {\n\t\treturn state{}",
		"\tif false {\n\t\treturn state{}",
	},
	{
		"ringbuf/restart.go", "a write position behind the events that were read is a restart",
		"if s.fill < r.Uncommitted() {",
		"if false {",
	},
	{
		"ringbuf/restart.go", "a write position one slot behind the events that were read is a restart",
		"if s.fill < r.Uncommitted() {",
		"if s.fill+1 < r.Uncommitted() {",
	},
	{
		"ringbuf/restart.go", "a write position of 0 is ambiguous",
		"case s.write == 0 && (r.committed != 0 || r.mode == Observe):",
		"case s.write == 0 && r.mode == Observe:",
	},
	{
		"ringbuf/restart.go", "at position 0, changed slots show a restart",
		"\t\tif !r.sameRun() {\n\t\t\treturn s, ErrRestarted",
		"\t\tif false {\n\t\t\treturn s, ErrRestarted",
	},
	{
		"ringbuf/restart.go", "an unchanged file proves a wrap only if the agent has pushed",
		"(!same || !r.sampled.pushed):",
		"!same:",
	},
	{
		"ringbuf/restart.go", "a push proves a wrap only if the file is unchanged",
		"(!same || !r.sampled.pushed):",
		"!r.sampled.pushed:",
	},
	{
		"ringbuf/restart.go", "a write position of 0 is believed only once the file is a second old",
		"case now.Age < settleTime &&",
		"case now.Age < 0 &&",
	},
	{
		"ringbuf/restart.go", "a write position of 0 is believed once the file is a second old",
		"case now.Age < settleTime &&",
		"case now.Age < 1<<62 &&",
	},
	{
		"ringbuf/restart.go", "a surprising position is loaded again",
		"\tconst tries = 100\n\tfor range tries {\n\t\t// Acquire",
		"\tconst tries = 1\n\tfor range tries {\n\t\t// Acquire",
	},
	{
		"ringbuf/restart.go", "a sample proves nothing before a push",
		"r.sampled = stamp{changed: now.Changed, write: r.lastWrite}",
		"r.sampled = stamp{changed: now.Changed, write: r.lastWrite, pushed: true}",
	},
	{
		"ringbuf/restart.go", "a changed file at the end of the ring may mean a restart",
		"r.mayHaveRestarted = true",
		"r.mayHaveRestarted = false",
	},
	{
		"ringbuf/restart.go", "the end of the ring is remembered, not its start",
		"copy(r.tail, r.ending())",
		"copy(r.tail, r.slots)",
	},
	{
		"ringbuf/restart.go", "a read position of 0 is a restart if the file has changed",
		"if s.read == 0 && !r.unchanged() {",
		"if false {",
	},
	{
		"ringbuf/restart.go", "events that another consumer took are skipped",
		"if r.distance(from, to) > r.Uncommitted() && ",
		"if false && ",
	},
	{
		"ringbuf/restart.go", "a read position that another consumer moved backward skips nothing",
		"(isPending || !isBefore)",
		"(isPending || !isBefore || true)",
	},
	{
		"ringbuf/restart.go", "a read position of a pending event is not before it",
		"(isPending || !isBefore)",
		"(isPending && false || !isBefore)",
	},
	{
		"ringbuf/commit.go", "a commit remembers the position before it",
		"r.previous, r.committed = r.committed, r.position",
		"r.committed = r.position",
	},
	{
		"ringbuf/restart.go", "a commit from position 0 is undone after a restart",
		"\t\tatomic.CompareAndSwapUint64(r.read, to, from)\n",
		"",
	},
	{
		"ringbuf/restart.go", "a commit to position 0 is not undone",
		"if to != 0 {",
		"if true {",
	},
	{
		"ringbuf/restart.go", "a commit from position 0 checks whether the agent has restarted",
		"(from != 0 || r.continued(to))",
		"true",
	},
	{
		"ringbuf/restart.go", "a run continues only if the slots that were read are unchanged",
		"atomic.LoadUint64(r.write) >= to && r.sameRun() ||",
		"atomic.LoadUint64(r.write) >= to ||",
	},
	{
		"ringbuf/restart.go", "the slots that were read at position 0 are remembered",
		"\tcase r.committed == 0:\n\t\tif r.next < r.seenTo {",
		"\tcase false:\n\t\tif r.next < r.seenTo {",
	},
	{
		"ringbuf/restart.go", "the checksum from position 0 covers all slots",
		"if (from != 0 || r.mode == Observe) && r.distance",
		"if r.distance",
	},
	{
		"ringbuf/restart.go", "zeros at the end of a file that was extended are no events",
		"if err != nil || now.Changed == r.sampled.changed {\n\t\treturn n, err",
		"if err != nil || now.Size > 0 {\n\t\treturn n, err",
	},
	{
		"ringbuf/commit.go", "a commit checks the slots that were read",
		"\tif err == nil && !r.sameRun() {\n\t\terr = ErrRestarted",
		"\tif err != nil && !r.sameRun() {\n\t\terr = ErrRestarted",
	},
	{
		"ringbuf/commit.go", "a commit checks the header first",
		"\t_, err := r.look()\n\tif err == nil && !r.sameRun()",
		"\tvar err error\n\tif err == nil && !r.sameRun()",
	},
	{
		"ringbuf/commit.go", "a commit is a compare-and-swap",
		"\t\tdone, err = r.swap(r.committed, r.position)\n",
		"\t\tdone = atomic.CompareAndSwapUint64(r.read, atomic.LoadUint64(r.read), r.position)\n",
	},
	{
		"ringbuf/commit.go", "the change time of a ring with more events proves nothing",
		"write == position && now.Changed != t",
		"write < r.mask+1 && now.Changed != t",
	},
	{
		"ringbuf/commit.go", "a changed file with equal events is another run",
		"write == position && now.Changed != t",
		"write == position && now.Changed != t && t == 0",
	},
	{
		"ringbuf/commit.go", "a fingerprint is only of slots that were read",
		"\t\tif !r.sameRun() {\n\t\t\tr.err = ErrRestarted",
		"\t\tif false {\n\t\t\tr.err = ErrRestarted",
	},
	{
		"ringbuf/ahead.go", "unread events are discarded by a restart",
		"if r.mem == nil || len(r.ahead.slots) == 0 || r.ahead.write != r.next",
		"if r.mem == nil || len(r.ahead.slots) == 0",
	},
	{
		"ringbuf/ahead.go", "changed slots after the last event are discarded by a restart",
		"bytes.Equal(now, r.ahead.slots), err",
		"true || bytes.Equal(now, r.ahead.slots), err",
	},
	{
		"ringbuf/ahead.go", "slots of a file of another size may have been written",
		"errors.Is(err, ErrRestarted) && !r.covered(int(r.next))",
		"err == nil || errors.Is(err, ErrRestarted) || !r.covered(0)",
	},
	{
		"ringbuf/reader.go", "an idle ring has the committed read position",
		"(r.mode == Observe || atomic.LoadUint64(r.read) == r.committed) &&",
		"true &&",
	},
	{
		"ringbuf/restart.go", "the change time at the end of the ring is remembered",
		"\t\tr.endChanged = now.Changed\n",
		"",
	},
}
