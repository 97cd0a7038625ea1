// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package drain

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func emptyOwner(t *testing.T) *owner {
	t.Helper()
	shape, err := tally.NewShape(tally.Config{})
	must.OK(t, err)
	return newOwner(&Config{Shape: shape}, nil, false)
}

func TestOwnerKeepsWhatItNeeds(t *testing.T) {
	one, two := files.ID{Dev: 1, Ino: 1}, files.ID{Dev: 1, Ino: 2}
	pod := Holder{Pod: "uid-1"}
	running := agent{Agent: Agent{ID: "a", Path: "/1/a"}, source: &harness{}, file: one, reader: &ringbuf.Reader{}, exit: exit{up: UpYes}}
	maybe, closed, exited := running, running, agent{Agent: Agent{ID: "c"}, source: &harness{}, exit: exit{up: UpNo, empty: time.Unix(1, 0)}}
	maybe.exit.up = UpUnknown
	closed.reader, closed.exit.up = nil, UpNo
	offer := func(id, path string) Offer { return Offer{Agent: Agent{ID: id, Path: path}, File: two} }
	with := func(m Offer, change func(*Offer)) Offer { change(&m); return m }
	unused := func(m *Offer) { m.Exited = true }
	inPod := func(m *Offer) { m.Agent.Holder = pod }
	for name, tc := range map[string]struct {
		agent *agent // that the owner has
		pod   int    // number of other agents in the pod
		limit int
		saves bool // with a checkpoint of an agent
		offer Offer
		want  error
	}{
		"new agent":                         {offer: offer("a", "/1/a")},
		"new agent that has exited":         {offer: with(offer("a", "/1/a"), unused), want: ErrUnneeded},
		"same file":                         {agent: &running, offer: with(offer("b", "/1/b"), func(m *Offer) { m.File = one }), want: ErrOpen},
		"same file, locked by this process": {agent: &running, offer: with(offer("b", "/1/b"), func(m *Offer) { m.File, m.Locked = one, ringbuf.ErrLocked }), want: ErrOpen},
		"locked by another":                 {agent: &running, offer: with(offer("b", "/1/b"), func(m *Offer) { m.Locked = ringbuf.ErrLocked }), want: ringbuf.ErrLocked},
		"file of the same path":             {agent: &running, offer: offer("a", "/1/a")},
		"same ID while it runs":             {agent: &running, offer: offer("a", "/2/a"), want: ErrIdentity},
		"same ID while it may run":          {agent: &maybe, offer: offer("a", "/2/a")},
		"same ID, has exited":               {agent: &maybe, offer: with(offer("a", "/2/a"), unused), want: ErrUnneeded},
		"closed, not restarted":             {agent: &closed, offer: with(offer("a", "/1/a"), unused), want: ErrUnneeded},
		"closed, restarted":                 {agent: &closed, offer: offer("a", "/1/a")},
		"at the limit":                      {agent: &running, limit: 1, offer: offer("b", "/1/b"), want: ErrLimit},
		"below the limit":                   {agent: &running, limit: 2, offer: offer("b", "/1/b")},
		"at the limit, known":               {agent: &maybe, limit: 1, offer: offer("a", "/1/a")},
		"full pod":                          {pod: maxHolderRings, offer: with(offer("b", "/1/b"), inPod), want: ErrContainerLimit},
		"almost full pod":                   {pod: maxHolderRings - 1, offer: with(offer("b", "/1/b"), inPod)},
		"beside a full pod":                 {pod: maxHolderRings, offer: offer("b", "/1/b")},
		"beside an exited agent of no pod":  {agent: &exited, pod: maxHolderRings, offer: with(offer("b", "/1/b"), inPod), want: ErrContainerLimit},
		"has exited, with a checkpoint":     {saves: true, offer: with(offer("stored", "/1/a"), unused)},
		"has exited, without a checkpoint":  {saves: true, offer: with(offer("a", "/1/a"), unused), want: ErrUnneeded},
	} {
		t.Run(name, func(t *testing.T) {
			o := emptyOwner(t)
			o.cfg.MaxRings = tc.limit
			if o.saves = tc.saves; tc.saves {
				o.pages, _ = checkpoint.NewPages(nil)
				o.pages.Put(&checkpoint.Entry{ID: "stored", Totals: tally.NewAgent(o.cfg.Shape).State()})
				o.restore("stored", time.Time{})
			}
			if tc.agent != nil {
				o.agents[tc.agent.ID], o.order = tc.agent, []*agent{tc.agent}
				o.own(tc.agent, tc.agent.file)
			}
			for i := range tc.pod {
				o.running(fmt.Sprint("pod-", i), pod)
			}
			if err := o.admit(&tc.offer); !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
				t.Errorf("error = %v, want %v", err, tc.want)
			}
		})
	}
}

// A container that is full offers more and more rings, and none of its agents can give way.
func TestSearchesForRoomAreLimited(t *testing.T) {
	o := emptyOwner(t)
	pod := Holder{Pod: "uid-1"}
	for i := range maxHolderRings {
		o.running(fmt.Sprint("pod-", i), pod)
	}
	for range maxWork/maxHolderRings + 2 { // the last one isn't searched for
		m := Offer{Agent: Agent{ID: "new", Holder: pod}}
		if err := o.admit(&m); !errors.Is(err, ErrContainerLimit) {
			t.Fatalf("error = %v", err)
		}
	}
	if !o.exhausted(pod) {
		t.Error("the searches aren't part of the container's work")
	}
}

// The next ring of an agent may have the file of its last one, such as on another mount.
func TestFileThatAnotherAgentHasStaysKnown(t *testing.T) {
	o, one, two := emptyOwner(t), files.ID{Ino: 1}, files.ID{Ino: 2}
	a, b := &agent{reader: &ringbuf.Reader{}}, &agent{reader: &ringbuf.Reader{}}
	o.own(a, one)
	o.own(b, one)
	if o.own(a, two); o.agentOf(one) != b || o.agentOf(two) != a {
		t.Errorf("the files are %v", o.files)
	}
}

func TestHoldersAndLayoutsAreNamed(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	got := make(map[string]string)
	for _, h := range []Holder{{Pod: "p", Container: id}, {Container: id}, {Pod: "p"}, {Place: "/rings", Shared: true}, {Place: "mnt:[1]"}} {
		got[h.String()] = ""
	}
	for _, s := range []Snapshot{{Layout: ringbuf.V3}, {Store: true}} {
		got[s.LayoutName()] = ""
	}
	want := map[string]string{
		"container 0123456789ab of pod p": "", "container 0123456789ab": "", "pod p": "", "directory /rings": "", "mount namespace mnt:[1]": "",
		"v3": "", "prometheus_mp_v1": "",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// The owner would otherwise check the rings of a container that must wait all the time.
func TestRingOfALimitedContainerIsDueLater(t *testing.T) {
	b := started(t, false)
	h := Holder{Pod: "pod"}
	w, _ := b.add("/hostile", 64, h)
	b.stepIn(workIn)
	b.owner.work[h] = maxWork
	must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxRequests, 1)))
	b.stepIn(100 * time.Millisecond)
	if a := b.owner.agents["/hostile"]; !a.due.Equal(b.owner.workAt.Add(workIn)) || a.tally.Requests(tally.Transmit).Events != 0 {
		t.Errorf("the ring is due at %v, want %v", a.due, b.owner.workAt.Add(workIn))
	}
}

// The owner finds a file and counts a pod's agents without looking at each agent.
func TestOwnerKnowsFilesAndHolders(t *testing.T) {
	b := started(t, false)
	one, two, pod := files.ID{Dev: 1, Ino: 1}, files.ID{Dev: 1, Ino: 2}, Holder{Pod: "uid-1"}
	a := b.agent()
	for _, step := range []struct {
		do    func()
		files map[files.ID]bool
		rings map[Holder]int
	}{
		{func() { b.owner.own(a, one) }, map[files.ID]bool{one: true}, map[Holder]int{{}: 1}},
		{func() { b.owner.own(a, two) }, map[files.ID]bool{two: true}, map[Holder]int{{}: 1}},
		{func() { b.owner.describe(a, Agent{ID: a.ID, Holder: pod}, b.reader, b.now) }, map[files.ID]bool{two: true}, map[Holder]int{pod: 1}},
		{func() { b.owner.drop(a) }, map[files.ID]bool{}, map[Holder]int{}},
	} {
		step.do()
		known := make(map[files.ID]bool)
		for id := range b.owner.files {
			known[id] = b.owner.agentOf(id) == a
		}
		if d := cmp.Diff(step.files, known) + cmp.Diff(step.rings, b.owner.rings); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
}
