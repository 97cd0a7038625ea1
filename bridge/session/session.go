package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
)

var (
	// ErrClosed is what a session says of packets that come after its Close.
	ErrClosed = os.ErrClosed
	// ErrExists means that the files of a session are there already.
	ErrExists = fs.ErrExist
	// ErrName means that a session's name can't be that of a file.
	ErrName = errors.New("not a name for a file")
)

// paths are the files of a session.
type paths struct {
	csv, json string
}

// Session records the packets of one run of a pipeline. It is safe for
// concurrent use by any number of goroutines.
type Session struct {
	name    string
	files   paths
	clock   func() time.Time
	start   time.Time
	metrics *instruments

	closing  sync.Once
	closeErr error

	mu     sync.Mutex
	rows   *rowLog // nil where the files could not be opened
	err    error   // why not
	totals *totals
	routes *routes
	late   *time.Timer // writes the rows of a burst that has ended
	armed  bool        // late will fire
	end    time.Time
	closed bool
}

// Open starts a session in a directory, which is made if it isn't there; an
// empty dir is [DefaultDir]. The errors are those of making directory and
// file, ErrExists where one of the session's files is there already, and
// ErrName.
//
// The session is never nil. With an error it has no files: its metrics go on,
// while each Record, and Close, returns that error. So a pipeline may report
// it and go on.
func Open(dir string, opts ...Option) (*Session, error) {
	c := newConfig(opts)
	if dir == "" {
		dir = DefaultDir
	}
	start := c.clock()
	if c.name == "" {
		c.name = start.Local().Format("session_2006-01-02_15-04-05")
	}
	s := &Session{
		name: c.name,
		files: paths{
			csv:  filepath.Join(dir, c.name+".csv"),
			json: filepath.Join(dir, c.name+".json"),
		},
		clock:  c.clock,
		start:  start,
		totals: newTotals(c.operationLimit),
	}
	s.routes = newRoutes(s.totals, c.layerOnDuration)

	var metricsErr, filesErr error
	s.metrics, metricsErr = newInstruments(c.provider)
	if metricsErr != nil {
		metricsErr = fmt.Errorf("open session %q: %w", s.name, metricsErr)
	}
	s.rows, filesErr = s.openFiles(dir, c.create)
	if filesErr != nil {
		s.err = fmt.Errorf("open session %q: %w", s.name, filesErr)
	}
	return s, errors.Join(s.err, metricsErr)
}

// openFiles makes the CSV. The summary's file is made by Close; it only must
// not be there yet.
func (s *Session) openFiles(dir string, create func(string) (file, error)) (*rowLog, error) {
	if s.name != filepath.Base(s.name) || s.name == "." || s.name == ".." {
		return nil, ErrName
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(s.files.json); err == nil {
		return nil, exists(&fs.PathError{Op: "open", Path: s.files.json, Err: fs.ErrExist})
	}
	rows, err := openRowLog(s.files.csv, create)
	return rows, exists(err)
}

// exists says what to do about a file that is there already.
func exists(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w (a session is never overwritten: give it another name or move the file)", err)
	}
	return err
}

// Name is the session's name.
func (s *Session) Name() string { return s.name }

// CSVPath is the path of the CSV.
func (s *Session) CSVPath() string { return s.files.csv }

// JSONPath is the path of the summary, a file that Close makes.
func (s *Session) JSONPath() string { return s.files.json }

// Record records a packet that ended. Its row is in the file when Record
// returns, or shortly after where packets come in a burst; the package's
// documentation says when. The errors are those of writing rows, such as a
// full disk, and ErrClosed after Close; on any but the latter the packet is in
// metrics and summary all the same.
func (s *Session) Record(p Packet) error {
	p.Duration = max(p.Duration, 0)
	p.Memory = max(p.Memory, 0)
	var message, errorType string
	if p.Err != nil {
		// Before the lock, as these may be anybody's code.
		message, errorType = clean(p.Err.Error()), p.errorType()
	}
	points, fallback, err := s.log(&p, message, errorType)
	if points != nil {
		s.metrics.record(points, p.Duration, p.Memory)
	}
	if fallback != nil {
		s.metrics.fallbacks.Add(context.Background(), 1, fallback...)
	}
	return err
}

// log counts a packet and writes its row, both under one lock so that the
// rows are in the order of their timestamps. It returns the data points that
// the packet goes to, none after Close; measuring them needs no lock.
func (s *Session) log(p *Packet, message, errorType string) (*series, []metric.AddOption, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, ErrClosed
	}
	now := s.clock()
	if p.End.IsZero() {
		p.End = now
	}
	r := s.routes.of(p)
	s.totals.add(r.operation, r.selection, r.key.device, p.Duration, p.Err == nil)

	points := r.ok
	if p.Err != nil {
		points = s.routes.failure(r, errorType)
	}
	var fallback []metric.AddOption
	if p.fellBack() {
		fallback = s.routes.fallback(p.DeviceTarget, p.Device)
	}
	return points, fallback, s.writeRow(r, p, message, now)
}

func (s *Session) writeRow(r *route, p *Packet, message string, now time.Time) error {
	l := s.rows
	if l == nil {
		return s.err
	}
	l.waiting = appendRow(l.waiting, p.End, r.head, r.tail, p, message)
	if err := l.add(now); err != nil {
		return fmt.Errorf("record packet %d of session %q: %w", p.ID, s.name, err)
	}
	if len(l.waiting) > 0 && !s.armed {
		s.armed = true
		if s.late == nil {
			s.late = time.AfterFunc(writeDelay, s.writeLate)
		} else {
			s.late.Reset(writeDelay)
		}
	}
	return nil
}

// Flush writes the rows of a burst that wait. The errors are those of Record.
func (s *Session) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case s.rows == nil:
		return s.err
	}
	if err := s.rows.flush(s.clock()); err != nil {
		return fmt.Errorf("flush session %q: %w", s.name, err)
	}
	return nil
}

// writeLate writes the last rows of a burst, after which no packet came that
// would have. What it can't write shows at the next Record and at Close.
func (s *Session) writeLate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	if !s.closed {
		_ = s.rows.flush(s.clock())
	}
}

// AddPromptTokens counts tokens that the pipeline read as its prompt.
func (s *Session) AddPromptTokens(n int64) {
	if s.count(&s.totals.promptTokens, n) {
		s.metrics.tokens.Add(context.Background(), n, s.metrics.prompt...)
	}
}

// AddGeneratedTokens counts tokens that the pipeline generated.
func (s *Session) AddGeneratedTokens(n int64) {
	if s.count(&s.totals.generatedTokens, n) {
		s.metrics.tokens.Add(context.Background(), n, s.metrics.generated...)
	}
}

// AddContention counts events in which CPU and iGPU waited for each other.
// The summary has them as cpu_igpu_contention_events; there is no metric.
func (s *Session) AddContention(n int64) {
	s.count(&s.totals.contention, n)
}

// count adds to one of the totals. Nothing is counted after Close, nor are
// negative numbers.
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

// Summary is the session's summary so far, and after Close the one that Close
// wrote.
func (s *Session) Summary() Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := s.end
	if !s.closed {
		end = s.clock()
	}
	return s.totals.summary(s.name, s.start, end, s.files)
}

// Close ends the session and writes its summary. The errors are those of
// writing it, and of what Open and Record could not do: the number of rows
// that are missing in the CSV and why the first of them is. Close may be
// called again, and then returns the same.
func (s *Session) Close() error {
	s.closing.Do(func() {
		if err := s.finish(); err != nil {
			s.closeErr = fmt.Errorf("close session %q: %w", s.name, err)
		}
	})
	return s.closeErr
}

func (s *Session) finish() error {
	s.mu.Lock()
	s.closed = true
	s.end = s.clock()
	if s.late != nil {
		s.late.Stop()
	}
	s.mu.Unlock()
	if s.rows == nil {
		return s.err
	}
	return errors.Join(s.rows.close(s.end), s.Summary().write(s.files.json))
}
