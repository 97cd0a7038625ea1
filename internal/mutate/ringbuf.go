// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

// ringMutations are bugs of the reader.
var ringMutations = []mutation{
	{
		"ringbuf/reader.go", "a consumer opens a ring in the ambiguous state only once its file is a second old",
		"state.Age < settleTime",
		"state.Age < 0",
	},
	{
		"ringbuf/restart.go", "another version or capacity is a restart",
		"\tif !r.is(r.layout.Version(), r.mask+1) {\n\t\treturn state{}, ErrRestarted",
		"\tif false {\n\t\treturn state{}, ErrRestarted",
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
		"\tif s.write != 0 && r.committed != 0 &&",
		"\tif r.committed != 0 &&",
	},
	{
		"ringbuf/restart.go", "at position 0, changed slots show a restart",
		"\tcase r.sameRun():\n",
		"\tcase r.sameRun(), r.mask != 0:\n",
	},
	{
		"ringbuf/restart.go", "a write position of 0 is believed only once the file is a second old",
		"case s.write == 0 && now.Age < settleTime && ",
		"case s.write == 0 && now.Age < 0 && ",
	},
	{
		"ringbuf/restart.go", "a write position of 0 is believed once the file is a second old",
		"case s.write == 0 && now.Age < settleTime && ",
		"case s.write == 0 && ",
	},
	{
		"ringbuf/reader.go", "a changed file at the end of the ring may mean a restart",
		"r.mayHaveRestarted = err == nil && now.Changed != r.endChanged",
		"r.mayHaveRestarted = err != nil && now.Changed != r.endChanged",
	},
	{
		"ringbuf/restart.go", "a read position of 0 is a restart",
		"if s.read == 0 {\n\t\treturn ErrRestarted",
		"if false {\n\t\treturn ErrRestarted",
	},
	{
		"ringbuf/restart.go", "events that another consumer took are skipped",
		"if !read || r.distance(r.next, to) <= s.pending {",
		"if !read && r.next == r.mask+1 {",
	},
	{
		"ringbuf/restart.go", "a read position that another consumer moved backward skips nothing",
		"if !read || r.distance(r.next, to) <= s.pending {",
		"if read = r.distance(from, to) <= r.Uncommitted(); !read {",
	},
	{
		"ringbuf/restart.go", "a position of another consumer that is further behind than was committed is one of the next lap",
		"|| uint64(r.distance(to, from)) <= r.moved",
		"|| true",
	},
	{
		"ringbuf/restart.go", "a commit from position 0 is undone after a restart",
		"\t\t\tatomic.CompareAndSwapUint64(r.read, from, 0)\n",
		"",
	},
	{
		"ringbuf/restart.go", "a commit from position 0 checks whether the agent has restarted",
		"if !r.continues(write) {",
		"if r.layout == 0 && !r.continues(write) {",
	},
	{
		"ringbuf/restart.go", "a run continues only if the slots that were read are unchanged",
		"(write == 0 || write >= r.next) && r.sameRun()",
		"(write == 0 || write >= r.next)",
	},
	{
		"ringbuf/restart.go", "a run continues only at the position that was read, or beyond it",
		"(write == 0 || write >= r.next) && r.sameRun()",
		"r.sameRun()",
	},
	{
		"ringbuf/restart.go", "a run continues only with the same layout and capacity",
		"return r.is(r.layout.Version(), r.mask+1) && (write",
		"return (write",
	},
	{
		"ringbuf/restart.go", "a commit from position 0 takes a write position of 0 for a restart at first",
		"return err == nil && now.Age >= settleTime && r.sameRun()",
		"return err == nil && now.Age >= 0 && r.sameRun()",
	},
	{
		"ringbuf/restart.go", "a commit from position 0 takes no slot from an agent that has restarted",
		"\t\tif !r.sameRun() {\n\t\t\treturn false",
		"\t\tif false {\n\t\t\treturn false",
	},
	{
		"ringbuf/restart.go", "a commit from position 0 first returns one slot",
		"\t\tfrom = 1\n",
		"\t\tfrom = to\n",
	},
	{
		"ringbuf/checksum.go", "the slots that were read at position 0 are remembered",
		"\tcase r.committed == 0:\n\t\tif r.next < r.seenTo {",
		"\tcase false:\n\t\tif r.next < r.seenTo {",
	},
	{
		"ringbuf/checksum.go", "the checksum from position 0 covers all slots",
		"if (from != 0 || r.mode == Observe) && r.distance",
		"if r.distance",
	},
	{
		"ringbuf/commit.go", "a commit checks the header first",
		"\ts, err := r.look()\n",
		"\ts, err := state{write: atomic.LoadUint64(r.write)}, error(nil)\n",
	},
	{
		"ringbuf/restart.go", "a commit is a compare-and-swap",
		"return atomic.CompareAndSwapUint64(r.read, from, to), nil",
		"return atomic.CompareAndSwapUint64(r.read, atomic.LoadUint64(r.read), to), nil",
	},
	{
		"ringbuf/commit.go", "the change time of a ring with more events proves nothing",
		"write == position && now.Changed != t",
		"write < r.mask+1 && now.Changed != t",
	},
	{
		"ringbuf/commit.go", "the change time is loaded before the write position",
		"\t\tnow, err := r.stat() // first: an event that the agent writes meanwhile must show in its position\n\t\twrite := atomic.LoadUint64(r.write)\n",
		"\t\twrite := atomic.LoadUint64(r.write)\n\t\tnow, err := r.stat()\n",
	},
	{
		"ringbuf/commit.go", "a changed file with equal events is another run",
		"write == position && now.Changed != t",
		"write == position && now.Changed != t && t == 0",
	},
	{
		"ringbuf/ahead.go", "unread events are discarded by a restart",
		"if r.mem == nil || r.ahead.write != r.next",
		"if r.mem == nil || r.ahead.write == noPosition",
	},
	{
		"ringbuf/ahead.go", "slots that an agent writes during a read may be discarded by a restart",
		"|| atomic.LoadUint64(r.write) != write",
		"|| atomic.LoadUint64(r.write) > r.mask",
	},
	{
		"ringbuf/ahead.go", "changed slots after the last event are discarded by a restart",
		"bytes.Equal(now, r.ahead.slots), err",
		"true || bytes.Equal(now, r.ahead.slots), err",
	},
	{
		"ringbuf/reader.go", "an idle ring has the committed read position",
		"(r.mode == Observe || atomic.LoadUint64(r.read) == r.committed) &&",
		"true &&",
	},
	{
		"ringbuf/restart.go", "the change time at the end of the ring is remembered",
		"\t\tr.endChanged = now.Changed\n",
		"\t\t_ = now.Changed\n",
	},
}
