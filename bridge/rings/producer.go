package rings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/internal/watch"
)

// ScopeName is the name of the instrumentation scope of everything that this
// package reports.
const ScopeName = "github.com/nixl-otel/nixl-otel/bridge/rings"

// Producer reads the rings of some directories and gives what they say to the
// SDK's readers. It is safe for concurrent use.
//
// nixl.telemetry.ring.utilization is the highest fill since the last
// collection, by whichever reader: a Producer is best given to one.
type Producer struct {
	watcher *watch.Watcher
	log     *slog.Logger
	now     func() time.Time

	mu       sync.Mutex // guards what follows; held while something is produced
	state    state
	identity identity
	last     []metricdata.ScopeMetrics // the totals at Close
}

var _ sdkmetric.Producer = (*Producer)(nil)

type state uint8

const (
	made state = iota
	started
	closed
)

// New makes a Producer. Nothing is opened before [Producer.Start]. The error
// says which option, or which of NIXL's variables, has a value that can't be.
func New(opts ...Option) (*Producer, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("read NIXL's rings: %w", err)
	}
	p := &Producer{log: c.log, now: c.watch.Now}
	c.watch.Report = p.notice
	if len(c.sinks) > 0 {
		f := &feeder{sinks: c.sinks, log: c.log, now: c.watch.Now}
		c.watch.Tap = f.tap
	}
	if p.watcher, err = watch.New(c.watch); err != nil {
		return nil, fmt.Errorf("read NIXL's rings: %w", err)
	}
	if len(c.watch.Directories) > 1 {
		p.identity.instance = true
		if p.identity.hostname, err = c.hostname(); err != nil {
			return nil, fmt.Errorf("read NIXL's rings: find the host's name, which tells agents of one name apart: %w", err)
		}
		// As the receiver does, for the same identifiers.
		p.identity.hostname = strings.ToValidUTF8(p.identity.hostname, "\uFFFD")
	}
	return p, nil
}

// Start opens the rings that are there and begins to drain. It does nothing on
// a Producer that was started or closed before.
func (p *Producer) Start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == made {
		p.watcher.Start(nil)
		p.state = started
	}
}

// State tells what keeps the Producer from its work, or nil: a directory that
// can't be read, or rings of which not one can be opened.
func (p *Producer) State() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.state {
	case made:
		return errors.New("rings aren't read yet: the producer isn't started")
	case closed:
		return errors.New("rings aren't read any more: the producer is closed")
	case started:
	}
	return p.watcher.State()
}

// Close drains the rings once more and gives them up. Later collections return
// the totals at that time, so the last export is complete whether the
// MeterProvider is shut down before or after. It is safe to call twice, and
// returns nil.
func (p *Producer) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == started {
		p.watcher.Stop()
		p.last = p.collect(context.Background())
		p.watcher.Close()
	}
	p.state = closed
	return nil
}

// Produce drains the rings and returns the totals of all agents. After Close,
// it returns the totals at that time; before Start, nothing. It never returns
// an error.
func (p *Producer) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.state {
	case started:
		return p.collect(ctx), nil
	case closed:
		return p.last, nil
	default:
		return nil, nil
	}
}

func (p *Producer) collect(ctx context.Context) []metricdata.ScopeMetrics {
	b := newBuilder(&p.identity, p.now())
	p.watcher.Collect(ctx, b.agent)
	p.watcher.Delivered() // the SDK doesn't tell what has become of it
	p.identity.sweep()
	metrics := b.metrics()
	if len(metrics) == 0 {
		return nil
	}
	return []metricdata.ScopeMetrics{{Scope: instrumentation.Scope{Name: ScopeName}, Metrics: metrics}}
}

// notice logs what the watcher has to tell.
func (p *Producer) notice(n watch.Notice) {
	var args []any
	if n.Path != "" {
		args = append(args, "path", n.Path)
	}
	if n.Err != nil {
		args = append(args, "error", n.Err)
	}
	p.log.Log(context.Background(), n.Level, n.Text, args...)
}
