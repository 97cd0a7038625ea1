// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"embed"
	"errors"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"
)

//go:embed page
var files embed.FS

// Handler returns the handler of all requests.
func (p *Page) Handler() http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the directory is embedded
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(page))
	mux.HandleFunc("GET /events", p.events)
	mux.HandleFunc("GET /agent/{id}", p.serveAgent)
	return guard(mux)
}

func (p *Page) serveAgent(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(r.PathValue("id"))
	p.mu.Lock()
	agent := p.agents[id]
	d := details{Identity: []text{}, At: []int64{}, Times: [][]uint32{}}
	for _, c := range p.columns {
		if times, ok := c.times[id]; ok {
			d.At, d.Times = append(d.At, c.at), append(d.Times, times)
		}
	}
	p.mu.Unlock()
	if err != nil || agent == nil {
		http.NotFound(w, r)
		return
	}
	for _, part := range agent.Identity() {
		d.Identity = append(d.Identity, text(part))
	}
	d.Slowest = p.slowest(agent.ID)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encode(d)) // the browser may be gone
}

// Serve serves the page until ctx is done. It closes the listener.
func (p *Page) Serve(ctx context.Context, l net.Listener) error {
	const patience = 10 * time.Second // with a browser that sends its request slowly
	server := &http.Server{
		Handler: p.Handler(), ReadHeaderTimeout: patience, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // what browsers do wrong isn't of interest
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
