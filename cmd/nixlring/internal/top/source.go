package top

import (
	"log/slog"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/place"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/internal/watch"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

const (
	// locksEvery is how often it is asked who holds the rings.
	locksEvery = 2 * time.Second
	// goneAfter is how long an agent is silent until it is asked whether it
	// still runs, and how often it is asked.
	goneAfter = 10 * time.Second
	// warnFor is how long a warning is shown.
	warnFor = time.Minute
)

// SourceConfig says what to observe.
type SourceConfig struct {
	Directory   string
	Include     []string // patterns, as of package watch
	Recursive   bool     // patterns hold in subfolders, too
	RunInterval time.Duration
	Now         func() time.Time // time.Now if nil
	Locks       string           // the kernel's list of locks; /proc/locks if empty
}

// Source takes samples of a directory. It isn't safe for concurrent use.
type Source struct {
	cfg     SourceConfig
	watcher *watch.Watcher
	known   map[string]*acquaintance
	locked  time.Time // when it was last asked
	locks   map[string]Lock
	counted time.Time // when the rings were last counted
	left    int       // rings that the patterns leave out

	mu      sync.Mutex // guards what follows; the watcher reports from its loops
	warning string
	warned  time.Time
}

// acquaintance is what is known of an agent from earlier samples.
type acquaintance struct {
	events uint64
	since  time.Time // when events was last another number, or it was asked; zero before the first reading
	gone   bool
}

// NewSource checks the configuration. Nothing is looked at before Start.
func NewSource(cfg SourceConfig) (*Source, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Locks == "" {
		cfg.Locks = "/proc/locks"
	}
	s := &Source{cfg: cfg, known: make(map[string]*acquaintance)}
	w, err := watch.New(watch.Config{
		Directories: []string{cfg.Directory}, Include: cfg.patterns(), Mode: ringbuf.Observe,
		RunInterval: cfg.RunInterval, Now: cfg.Now, Report: s.note,
		Tally: tally.Config{Duration: tally.HistogramConfig{Bounds: bounds}, Size: tally.HistogramConfig{Kind: tally.NoHistogram}},
	})
	if err != nil {
		return nil, err
	}
	s.watcher = w
	return s, nil
}

// Start begins to observe. What stands in the rings now isn't new.
func (s *Source) Start() {
	s.watcher.Start(nil)
	s.meet()
}

// meet makes the acquaintance of the agents that are there.
func (s *Source) meet() {
	s.watcher.Agents(func(v watch.View) { s.known[v.Path] = &acquaintance{} })
	s.watcher.Drain()
}

// Close gives up the rings.
func (s *Source) Close() { s.watcher.Close() }

// Sample is how things stand. An agent appears in the sample after the one
// that found it: its ring has been read to the end by then, so that what had
// piled up in it doesn't look like a burst.
func (s *Source) Sample() Sample {
	now := s.cfg.Now()
	s.watcher.Drain()
	sample := Sample{At: now, Trouble: s.trouble(), Warning: s.lastWarning(now)}
	known := make(map[string]*acquaintance, len(s.known))
	s.watcher.Agents(func(v watch.View) {
		a := s.known[v.Path]
		if a == nil {
			known[v.Path] = &acquaintance{}
			return
		}
		known[v.Path] = a
		sample.Agents = append(sample.Agents, read(v))
	})
	s.watcher.Delivered() // nothing waits for it, so that agents that are gone may be forgotten
	s.known = known
	if len(known) == 0 {
		sample.Left = s.countLeft(now)
	}
	s.lookWho(now, sample.Agents)
	return sample
}

// trouble is what keeps agents from being seen, in the words of all commands.
func (s *Source) trouble() error {
	return place.Explain(place.Rings, s.cfg.Directory, s.watcher.State())
}

// lookWho adds who has the rings open, which no ring tells by itself.
func (s *Source) lookWho(now time.Time, agents []Reading) {
	if s.locks == nil || now.Sub(s.locked) >= locksEvery {
		paths := make([]string, len(agents))
		for i := range agents {
			paths[i] = agents[i].Path
		}
		s.locks, s.locked = lockHolders(s.cfg.Locks, paths), now
	}
	for i := range agents {
		r := &agents[i]
		r.Lock = s.locks[r.Path]
		r.Gone = s.known[r.Path].isGone(now, r)
	}
}

// isGone says whether an agent has ended: nobody has its ring open for writing.
// That is asked when the agent is first seen, and again while it is silent.
// Where it can't be told it hasn't ended.
func (a *acquaintance) isGone(now time.Time, r *Reading) bool {
	switch {
	case !a.since.IsZero() && r.Totals.Events != a.events:
		a.events, a.since, a.gone = r.Totals.Events, now, false
	case now.Sub(a.since) >= goneAfter:
		unattended, err := ringbuf.Unattended(r.Path)
		a.events, a.since, a.gone = r.Totals.Events, now, unattended && err == nil
	}
	return a.gone
}

// note keeps what is worth a line on the screen.
func (s *Source) note(n watch.Notice) {
	switch n.Kind {
	case watch.RingFull, watch.RingForeign, watch.DirectoryMissing: // a row or the trouble says it
		return
	}
	if n.Level < slog.LevelWarn {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warning, s.warned = n.String(), s.cfg.Now()
}

func (s *Source) lastWarning(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.warned) > warnFor {
		return ""
	}
	return s.warning
}
