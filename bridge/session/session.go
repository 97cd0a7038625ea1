// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/errtype"
	"github.com/nixl-otel/nixl-otel/bridge/internal/scope"
)

// Session records the packets of one run of a pipeline. It is safe for concurrent
// use.
//
// A nil *Session does nothing and returns no error; to turn telemetry off, leave it nil.
type Session struct {
	clock   func() time.Time
	start   time.Time
	metrics *instruments

	sum Summary // only its names, tokens and contention events; mu guards the numbers

	mu       sync.Mutex // guards what follows
	rows     *rowLog    // nil without files, or if they couldn't be created
	err      error      // why the files couldn't be created
	totals   *totals
	points   map[kind]*points
	closed   bool
	end      time.Time // zero before Close
	closeErr error
}

// Open starts a session in a directory and creates the directory if necessary. An
// empty dir means [DefaultDir].
//
// The session is never nil, so a pipeline can log the error and continue. A session
// whose files can't be created still records metrics, while each Record and
// Close return the error. If the MeterProvider rejects an instrument, OpenTelemetry's error
// handler gets the error.
func Open(dir string, opts ...Option) (*Session, error) {
	c := config{clock: time.Now}
	for _, o := range opts {
		o(&c)
	}
	s := &Session{
		clock: c.clock, start: c.clock(), metrics: newInstruments(scope.NewMeter(c.provider)),
		totals: newTotals(), points: make(map[kind]*points),
	}
	s.sum.SessionName = cmp.Or(c.name, s.start.Local().Format("session_2006-01-02_15-04-05"))
	if c.noFiles {
		return s, nil
	}
	if s.rows, s.err = s.openNamed(cmp.Or(dir, DefaultDir), c.name); s.err != nil {
		s.err = fmt.Errorf("open session %q: %w", s.sum.SessionName, s.err)
		return s, s.err
	}
	s.rows.limit, s.rows.keep = c.maxSize, c.keep
	return s, nil
}

// openNamed creates the directory, and opens the files under the given name or, without
// one, under the first free name for the session's start.
func (s *Session) openNamed(dir, name string) (*rowLog, error) {
	base := s.sum.SessionName
	if base != filepath.Base(base) || base == "." || base == ".." {
		return nil, errors.New("the name is not a valid file name; choose one without path separators")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for i := 2; ; i++ {
		path := filepath.Join(dir, s.sum.SessionName)
		s.sum.CSVLog, s.sum.JSONSummary = path+".csv", path+".json"
		rows, err := openRowLog(s.sum.CSVLog, s.sum.JSONSummary)
		if name != "" || !errors.Is(err, fs.ErrExist) {
			return rows, exists(err)
		}
		s.sum.SessionName = fmt.Sprintf("%s_%d", base, i)
	}
}

// exists adds to fs.ErrExist what to do.
func exists(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; choose another name or move the file", err)
	}
	return err
}

// Record records a completed packet. The packet's row is in the file when Record
// returns. If ctx has a sampled span, the packet's measurements get exemplars
// with its trace ID. Cancellation of ctx has no effect.
//
// If the row can't be written, or the file can't be rotated, Record returns the error; metrics
// and summary still include the packet. After [Session.Close], Record returns [os.ErrClosed] and
// doesn't count the packet.
func (s *Session) Record(ctx context.Context, p Packet) error {
	if s == nil {
		return nil
	}
	if p.Duration < 0 || p.Duration > maxDuration {
		p.Duration = 0
	}
	p.Memory = max(p.Memory, 0)
	var message, errorType string
	if p.Err != nil { // without the lock, because this may be user code
		message, errorType = clean(fmt.Sprint(p.Err)), errtype.Of(p.Err)
	}
	to, err := s.log(&p, message, errorType)
	if to != nil {
		s.metrics.record(ctx, to, &p)
	}
	return err
}

// log counts a packet and writes its row, both under the lock, so that the rows are
// in the order of their timestamps. It returns the packet's data points, or nil
// after Close. Recording them doesn't need the lock.
func (s *Session) log(p *Packet, message, errorType string) (*points, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("record packet %d of session %q: %w", p.ID, s.sum.SessionName, os.ErrClosed)
	}
	if p.End.IsZero() || math.Abs(float64(p.End.Unix())) >= maxTime {
		p.End = s.clock()
	}
	to := s.pointsOf(p, errorType)
	row := Row{
		Time: p.End, Device: to.device, Worker: to.worker, Duration: p.Duration, PacketID: p.ID, Layer: p.Layer,
		Operation: to.operation, Success: p.Err == nil, MemoryMB: float64(p.Memory) / bytesPerMB, Error: message,
	}
	s.totals.add(&row, to.selection)
	if s.rows == nil {
		return to, s.err
	}
	if err := s.rows.add(&row); err != nil {
		return to, fmt.Errorf("record packet %d of session %q: %w", p.ID, s.sum.SessionName, err)
	}
	return to, nil
}

// bytesPerMB is the unit of memory_used_mb. The Python program doesn't define it,
// but the frameworks that it uses count in MiB.
const bytesPerMB = 1 << 20

// AddPromptTokens counts tokens of prompts. It does nothing if n is less than 1 and
// after [Session.Close].
func (s *Session) AddPromptTokens(ctx context.Context, n int64) {
	if s != nil && s.count(&s.sum.PromptTokens, n) {
		s.metrics.tokens.Add(ctx, n, s.metrics.prompt.Add...)
	}
}

// AddGeneratedTokens counts generated tokens. It does nothing if n is less than 1 and
// after [Session.Close].
func (s *Session) AddGeneratedTokens(ctx context.Context, n int64) {
	if s != nil && s.count(&s.sum.TokensGenerated, n) {
		s.metrics.tokens.Add(ctx, n, s.metrics.generated.Add...)
	}
}

// AddContentionEvents counts how often CPU and iGPU waited for each other, for the summary. It
// does nothing if n is less than 1 and after [Session.Close].
func (s *Session) AddContentionEvents(n int64) {
	if s != nil {
		s.count(&s.sum.ContentionEvents, n)
	}
}

// count adds to one of the totals and reports whether it did.
func (s *Session) count(total *int64, n int64) bool {
	if n <= 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	*total += n
	return true
}

// Summary returns the current summary or, after [Session.Close], the final one. It
// includes the session's name and the paths of its files.
func (s *Session) Summary() Summary {
	if s == nil {
		return Summary{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.summary()
}

func (s *Session) summary() Summary {
	end := s.end
	if !s.closed {
		end = s.clock()
	}
	return s.totals.summary(s.sum, s.start, end)
}

// Close ends the session and writes its summary. It joins the error of writing the
// summary, the error of creating the files, and, if rows are missing in the CSV,
// their number and the first error. Further calls return the same result.
//
// Close doesn't flush or shut down the MeterProvider. The session and the provider
// can be closed in any order: the last export includes all packets recorded before
// the provider's Shutdown.
func (s *Session) Close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.closeErr
	}
	s.closed, s.end = true, s.clock()
	err := s.err
	if s.rows != nil {
		err = errors.Join(s.rows.close(), s.summary().write(s.sum.JSONSummary, false))
	}
	if err != nil {
		s.closeErr = fmt.Errorf("close session %q: %w", s.sum.SessionName, err)
	}
	return s.closeErr
}

// DefaultDir is the default directory of sessions.
const DefaultDir = "telemetry"

// Option configures a [Session].
type Option func(*config)

type config struct {
	name     string
	noFiles  bool
	maxSize  int64
	keep     int
	provider metric.MeterProvider
	clock    func() time.Time // for tests; time.Now by default
}

// WithName names the session and its files. The name must not contain a path
// separator. The package documentation describes the default name.
func WithName(name string) Option {
	return func(c *config) { c.name = name }
}

// WithoutFiles makes a session that only records metrics, and creates neither a directory nor
// files. [Session.Summary] is the only summary.
func WithoutFiles() Option {
	return func(c *config) { c.noFiles = true }
}

// WithMaxFileSize limits the size of the CSV, in bytes. Before a row that would exceed it, the session
// renames the full file N.csv to N.1.csv, the next one to N.2.csv, and so on, and starts
// another N.csv. It keeps the newest of the renamed files, as many as keep says, or all of them if
// keep is 0. The summary includes the packets of removed files.
//
// By default, a session has one CSV of any size. A row has about 90 bytes.
func WithMaxFileSize(bytes int64, keep int) Option {
	return func(c *config) { c.maxSize, c.keep = bytes, keep }
}

// WithMeterProvider sets the MeterProvider that the metrics go to. The default
// is the global one.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(c *config) { c.provider = p }
}
