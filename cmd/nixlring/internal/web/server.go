// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

const (
	// Interval is the time between two frames.
	Interval = 2 * time.Second
	// Window is the time over which rates and quantiles are measured.
	Window = 10 * time.Second
	// processesEvery is the time between two searches for processes without telemetry, which
	// examine all processes.
	processesEvery = 30 * time.Second
	// requestTimeout limits the time to read a request or to write an answer.
	requestTimeout = 10 * time.Second
)

//go:embed page
var files embed.FS

//go:embed page/app.css
var style string

// Style returns the style of the page, for other pages.
func Style() string { return style }

// Page is a page about some agents.
type Page struct {
	name string

	mu        sync.Mutex // guards the fields below
	board     *fleet.Board
	begun     time.Time // the time of the first frame
	processes []diagnose.Process
	state     json.RawMessage // the newest one; nil if nobody has asked for it
}

// New returns a page without frames. name is what is watched, and window the time over which rates and quantiles are measured.
func New(name string, window time.Duration) *Page {
	return &Page{name: name, board: fleet.NewBoard(window)}
}

// Run takes frames until ctx is done. processes returns those that use NIXL; it may be nil.
func (p *Page) Run(ctx context.Context, source fleet.Source, processes func() []diagnose.Process) {
	var searching sync.WaitGroup
	defer searching.Wait()
	if processes != nil {
		searching.Go(func() {
			for ctx.Err() == nil {
				found := processes()
				p.mu.Lock()
				p.processes = found
				p.mu.Unlock()
				select {
				case <-time.After(processesEvery):
				case <-ctx.Done():
				}
			}
		})
	}
	for ctx.Err() == nil {
		f, err := source.Next(ctx)
		if errors.Is(err, io.EOF) { // the end of a recording stays on the page
			<-ctx.Done()
		} else {
			p.Add(f, err)
		}
	}
}

// Add adds a frame, or the reason why there is none.
func (p *Page) Add(f *diagnose.Frame, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state = nil; err != nil {
		p.board.Fail(err)
		return
	}
	if p.begun.IsZero() {
		p.begun = f.Time
	}
	if f.Processes != nil {
		p.processes = f.Processes
	}
	p.board.Add(f)
}

// Serve answers requests until ctx is done.
func (p *Page) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: p.Handler(), ReadHeaderTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: time.Minute,
		ErrorLog: log.New(io.Discard, "", 0), // of connections; the browser shows what fails
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// policy lets a page load files of this server only.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler serves the page and its state. A request for another host comes from another site, whose name resolves
// to this address.
func (p *Page) Handler() http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the directory is embedded
	}
	static := http.FileServerFS(page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "this page can only be read", http.StatusMethodNotAllowed)
		case !local(r.Host):
			http.Error(w, "unexpected Host header; open the address that nixlring web printed", http.StatusForbidden)
		case r.URL.Path == "/state.json":
			h.Set("Content-Type", "application/json")
			_, _ = w.Write(p.answer(r.URL.Query().Get("agent"))) // the browser may be gone
		default:
			static.ServeHTTP(w, r)
		}
	})
}

// local reports whether the host of a request is an address or localhost.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || strings.EqualFold(host, "localhost")
}

// answer returns the state, with the details of an agent, as JSON.
func (p *Page) answer(agent string) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == nil {
		p.state = encode(p.newState())
	}
	return encode(struct {
		State json.RawMessage `json:"state"`
		Agent *details        `json:"agent"`
	}{p.state, p.newDetails(agent)})
}

// encode returns a value as JSON.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types of this package can always be encoded
	}
	return data
}
