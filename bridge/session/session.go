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
