// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

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

// paths are the files of a session.
type paths struct {
	csv, json string
}

// Session records the packets of one run of a pipeline. It is safe for concurrent
// use.
//
// A nil *Session is valid: its methods do nothing and return no error.
type Session struct {
	name    string
	files   paths
	clock   func() time.Time
	start   time.Time
	metrics *instruments

	closing  sync.Once
	closeErr error

	mu     sync.Mutex
	rows   *rowLog // nil if the files couldn't be created
	err    error   // why the files couldn't be created
	totals *totals
	routes *routes
	late   *time.Timer // writes the rows of a burst that has ended
	armed  bool        // late is running
	end    time.Time
	closed bool
}

// Open starts a session in a directory and creates the directory if necessary. An
// empty dir means [DefaultDir]. If a file of the session exists, Open returns
// [fs.ErrExist]: it never overwrites files.
//
// The session is never nil, so a pipeline can log the error and continue. A session
// whose files can't be created still records metrics, while each Record, Flush and
// Close return the error.
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
		totals: &totals{},
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

// openFiles creates the CSV. Close creates the summary, which must not exist
// yet.
func (s *Session) openFiles(dir string, create func(string) (file, error)) (*rowLog, error) {
	if s.name != filepath.Base(s.name) || s.name == "." || s.name == ".." {
		return nil, errors.New("the name is not a valid file name; choose one without path separators")
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

// exists adds to fs.ErrExist what to do.
func exists(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; choose another name or move the file", err)
	}
	return err
}

// errClosed returns the error of a call after Close.
func (s *Session) errClosed(format string, args ...any) error {
	return fmt.Errorf("%s of session %q: %w", fmt.Sprintf(format, args...), s.name, os.ErrClosed)
}

// AddPromptTokens counts tokens of prompts. It does nothing if n is less than 1 and
// after [Session.Close].
func (s *Session) AddPromptTokens(ctx context.Context, n int64) {
	if s != nil && s.count(&s.totals.promptTokens, n) {
		s.metrics.tokens.Add(ctx, n, s.metrics.prompt...)
	}
}

// AddGeneratedTokens counts generated tokens. It does nothing if n is less than 1 and
// after [Session.Close].
func (s *Session) AddGeneratedTokens(ctx context.Context, n int64) {
	if s != nil && s.count(&s.totals.generatedTokens, n) {
		s.metrics.tokens.Add(ctx, n, s.metrics.generated...)
	}
}

// AddContentionEvents counts how often CPU and iGPU waited for each other. The
// summary reports the count; there is no metric, so the context isn't used yet. It
// does nothing if n is less than 1 and after [Session.Close].
func (s *Session) AddContentionEvents(_ context.Context, n int64) {
	if s != nil {
		s.count(&s.totals.contention, n)
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
	end := s.end
	if !s.closed {
		end = s.clock()
	}
	return s.totals.summary(s.name, s.start, end, s.files)
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
	return errors.Join(s.rows.close(s.end), s.Summary().create(s.files.json))
}
