package drain

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/notice"
)

// GroupConfig says how a [Group] drains.
type GroupConfig struct {
	Config
	Saver  *checkpoint.Saver   // nil to commit events as they are counted
	Report func(notice.Notice) // must not block
	Now    func() time.Time

	// ObserveLag is told how late a round of drains began, and ObserveEvents how
	// many events one has counted. Either may be nil.
	ObserveLag    func(time.Duration)
	ObserveEvents func(uint64)
}

func (c *GroupConfig) observeLag(lag time.Duration) {
	if c.ObserveLag != nil {
		c.ObserveLag(max(lag, 0))
	}
}

func (c *GroupConfig) observeEvents(n uint64) {
	if c.ObserveEvents != nil && n > 0 {
		c.ObserveEvents(n)
	}
}

// maxRemote bounds the number of loops for file systems that aren't local. Devices
// beyond it share loops.
const maxRemote = 8

// Group drains rings on all file systems. Its methods are safe for concurrent
// use.
type Group struct {
	cfg GroupConfig

	mu      sync.Mutex // guards what follows; held for moments only
	loops   map[uint64]*loop
	paths   map[string]*loop // where an agent is
	stopped bool
}

// NewGroup returns a group that drains what its sources open.
func NewGroup(cfg GroupConfig) *Group {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Group{cfg: cfg, loops: make(map[uint64]*loop), paths: make(map[string]*loop)}
}

// Send passes a message of a source to the loop that it concerns. It must be
// called on a goroutine that may block on the ring's file system, as that is
// asked where it is.
func (g *Group) Send(m Message) {
	if m, ok := m.(Opened); ok {
		g.opened(m)
		return
	}
	if l := g.loopOf(pathOf(m)); l != nil {
		l.mail.put(m)
	}
}

func pathOf(m Message) string {
	switch m := m.(type) {
	case Removed:
		return m.Path
	case Found:
		return m.Path
	case Touched:
		return m.Path
	case Attended:
		return m.Path
	default:
		return ""
	}
}

func (g *Group) loopOf(path string) *loop {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.paths[path]
}

func (g *Group) opened(m Opened) {
	key, dir := uint64(0), ""
	if d, err := m.Reader.Domain(); err != nil || !d.Local {
		key, dir = 1+d.Device%maxRemote, m.Agent.Dir
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		m.From.Close(m.Reader)
		return
	}
	l := g.loops[key]
	if l == nil {
		l = g.startLoop(dir)
		g.loops[key] = l
	}
	if before := g.paths[m.Agent.Path]; before != nil && before != l {
		before.mail.put(moved{m.Agent.Path})
	}
	g.paths[m.Agent.Path] = l
	l.mail.put(m)
}

// Collection is the totals of all agents at one time, by path.
type Collection struct {
	Snapshots []Snapshot
	numbers   map[*loop]uint64
}

// Collect drains all rings and returns the totals of all agents. With a saver
// they are stored by then, so that whoever exports them doesn't have to take
// them back after a crash, unless the store is slower than ctx or than a grace
// period. It doesn't wait for file systems that hang. After the last collection
// nothing is read from the rings any more.
func (g *Group) Collect(ctx context.Context, last bool) Collection {
	deadline := g.cfg.Now().Add(hungSave)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d.Add(-time.Until(d) / 10) // leaves time to export
	}
	type answer struct {
		loop *loop
		collected
	}
	asked := make(map[*loop]bool)
	for _, l := range g.all() {
		asked[l] = true
	}
	g.leaveSilent(asked) // or requests would pile up in a loop that hangs for long
	answers := make(chan answer, len(asked))
	for l := range asked {
		l.mail.put(&collect{deadline: deadline, last: last, done: func(c collected) { answers <- answer{l, c} }})
	}
	result := Collection{numbers: make(map[*loop]uint64)}
	check := time.NewTicker(hungAfter / 10)
	defer check.Stop()
	for len(asked) > 0 {
		select {
		case a := <-answers:
			delete(asked, a.loop)
			result.numbers[a.loop] = a.number
			result.Snapshots = append(result.Snapshots, a.snapshots...)
		case <-check.C:
			g.leaveSilent(asked)
		case <-ctx.Done():
			clear(asked)
		}
	}
	slices.SortFunc(result.Snapshots, func(a, b Snapshot) int { return strings.Compare(a.Path, b.Path) })
	return result
}

// leaveSilent removes the loops that won't answer: they hang, or have ended.
func (g *Group) leaveSilent(asked map[*loop]bool) {
	for l := range asked {
		if l.hangs(g.cfg.Now()) {
			l.reportHung()
			delete(asked, l)
		}
		select {
		case <-l.ended:
			delete(asked, l)
		default:
		}
	}
}

// Delivered says that a collection has arrived. An agent that has exited is
// reported until its last events have.
func (g *Group) Delivered(c Collection) {
	for l, number := range c.numbers {
		l.mail.put(delivered{number})
	}
}

// Stop gives up all rings and ends the loops. It waits for them until ctx ends;
// one that hangs in a file system is left behind, which the error says.
func (g *Group) Stop(ctx context.Context) error {
	g.mu.Lock()
	g.stopped = true
	g.mu.Unlock()
	loops := g.all()
	for _, l := range loops {
		l.mail.put(stop{})
	}
	errs := make([]error, len(loops))
	for i, l := range loops {
		errs[i] = l.wait(ctx)
	}
	return errors.Join(errs...)
}

func (g *Group) all() (list []*loop) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.loops {
		list = append(list, l)
	}
	return list
}
