// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

// ask calls the handler of a page directly. set may change the request.
func ask(p *Page, method, url string, set func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), method, url, http.NoBody)
	if set != nil {
		set(r)
	}
	w := httptest.NewRecorder()
	p.Handler().ServeHTTP(w, r)
	return w
}

const home = "http://127.0.0.1:9470/"

func TestPageLoadsNothingFromElsewhere(t *testing.T) {
	p := newPage(1, 10)
	for path, kind := range map[string]string{
		"": "text/html", "app.js": "text/javascript", "charts.js": "text/javascript", "units.js": "text/javascript", "app.css": "text/css",
		"uplot/uPlot.iife.min.js": "text/javascript", "uplot/uPlot.min.css": "text/css", "uplot/LICENSE": "text/plain", "icon.svg": "image/svg+xml",
	} {
		r := ask(p, http.MethodGet, home+path, nil)
		body, err := io.ReadAll(r.Body)
		must.OK(t, err)
		if r.Code != http.StatusOK || !strings.HasPrefix(r.Header().Get("Content-Type"), kind) || len(body) == 0 {
			t.Errorf("%s: %d, %s, %d bytes", path, r.Code, r.Header().Get("Content-Type"), len(body))
		}
		csp := r.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: Content-Security-Policy: %s", path, csp)
		}
		for _, outside := range []string{"http://", "https://", "//cdn"} {
			if strings.Contains(strings.ReplaceAll(string(body), "http://www.w3.org/2000/svg", ""), outside) && !strings.HasPrefix(path, "uplot/") {
				t.Errorf("%s contains %s", path, outside)
			}
		}
		if strings.Contains(string(body), "innerHTML") && !strings.HasPrefix(path, "uplot/") {
			t.Errorf("%s sets HTML, which could contain a name", path)
		}
	}
}

func TestRequestsOfOthersAreRejected(t *testing.T) {
	p := newPage(1, 10)
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, tt := range map[string]struct {
		method, url string
		set         func(*http.Request)
		want        int
	}{
		"address":                  {http.MethodGet, home, nil, 200},
		"HEAD":                     {http.MethodHead, home, nil, 200},
		"IPv6":                     {http.MethodGet, "http://[::1]:9470/", nil, 200},
		"a tunnel to another port": {http.MethodGet, "http://localhost:8000/", nil, 200},
		"a rebound name":           {http.MethodGet, "http://attacker.example:9470/", nil, 403},
		"a name like an address":   {http.MethodGet, "http://127.0.0.1.attacker.example/", nil, 403},
		"POST":                     {http.MethodPost, home, nil, 405},
		"DELETE":                   {http.MethodDelete, home + "agent/0", nil, 405},
		"OPTIONS":                  {http.MethodOptions, home, nil, 405},
		"a script of another site": {http.MethodGet, home + "events", header("Sec-Fetch-Site", "cross-site"), 403},
		"a script of this host":    {http.MethodGet, home + "agent/0", header("Sec-Fetch-Site", "same-site"), 403},
		"a link on another site": {http.MethodGet, home, func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
		}, 200},
		"no such page":  {http.MethodGet, home + "etc/passwd", nil, 404},
		"no such agent": {http.MethodGet, home + "agent/17", nil, 404},
		"not an agent":  {http.MethodGet, home + "agent/x", nil, 404},
		"known agent":   {http.MethodGet, home + "agent/0", nil, 200},
	} {
		if r := ask(p, tt.method, tt.url, tt.set); r.Code != tt.want {
			t.Errorf("%s: %d, want %d", name, r.Code, tt.want)
		}
	}
}

func TestDetailsOfAnAgent(t *testing.T) {
	r := ask(newPage(2, 10), http.MethodGet, home+"agent/1", nil)
	body, err := io.ReadAll(r.Body)
	must.OK(t, err)
	times := make([]uint32, 1+slices.Index(top.Bounds(), 500e-6))
	times[len(times)-1] = 600
	want := fmt.Sprintf(`{"identity":["namespace prod","pod decode-0","pod 0123"],"at":[1800000006000],"times":[%s],`+
		`"slowest":[{"at":1800000000000,"receive":true,"bytes":1.049e+06,"took":1,"post":0.001,"throughput":1.049e+06}]}`, encode(times))
	if string(body) != want || r.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%s", body)
	}
}

// A browser that doesn't read fills the buffers of its connection, and then its queue.
func TestBrowserThatDoesNotReadIsDisconnected(t *testing.T) {
	p := newPage(256, 10)
	server := httptest.NewServer(p.Handler())
	defer server.Close()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	must.OK(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	must.OK(t, err)
	reads := connect(t, p) // another browser, which reads
	reads.start()
	_, err = io.ReadFull(conn, make([]byte, 12)) // the status line: it is connected
	must.OK(t, err)
	clients := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.clients)
	}
	const most = 4000 // frames, far more than the buffers of a connection hold
	for i := 0; clients() > 1; i++ {
		if i == most {
			t.Fatalf("still connected after %d frames", i)
		}
		p.Add(fleet(256, 12+2*i))
		if i%3 == 0 {
			reads.next("points", new(any))
		}
		reads.next("frame", new(any))
	}
	must.OK(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	if _, err := io.Copy(io.Discard, conn); err != nil { // EOF: the server has closed the connection
		t.Error(err)
	}
}

func TestNumberOfBrowsersIsLimited(t *testing.T) {
	p := newPage(1, 10)
	for range mostClients {
		p.clients[&client{events: make(chan []byte, 100)}] = true
	}
	if r := ask(p, http.MethodGet, home+"events", nil); r.Code != http.StatusServiceUnavailable {
		t.Error(r.Code)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.OK(t, err)
	p := newPage(1, 10)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- p.Serve(ctx, l) }()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	must.OK(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	must.OK(t, err)
	_, err = io.ReadFull(conn, make([]byte, 1000))
	must.OK(t, err)
	stop()
	must.OK(t, <-served)
}
