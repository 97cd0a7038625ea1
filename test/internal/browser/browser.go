//go:build linux

// Package browser has tests look at pages as a person does, with Chromium.
package browser

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// Page is a tab of a browser without a window. Chromium speaks its DevTools
// protocol over two pipes: JSON messages, each ended by a NUL.
type Page struct {
	requests *os.File
	session  string
	width    int
	lastID   atomic.Int64

	mu      sync.Mutex
	waiting map[int64]chan message
	err     error // why no answer comes any more
}

type message struct {
	ID     int64           `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Open starts a browser with one page of a size, in CSS pixels, and ends it
// with the test.
func Open(tb testing.TB, program string, width, height int) *Page {
	tb.Helper()
	theirIn, requests, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	answers, theirOut, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	// Debian's script looks at HOME, and the profile goes there too.
	home := tb.TempDir()
	cmd := exec.CommandContext(tb.Context(), program, "--headless", "--remote-debugging-pipe", "--no-first-run",
		"--no-sandbox", // root has none
		"--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--hide-scrollbars",
		"--user-data-dir="+home)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home)
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4, as Chromium has them
	p := &Page{requests: requests, width: width, waiting: make(map[int64]chan message)}
	process := proc.Start(tb, cmd)
	_, _ = theirIn.Close(), theirOut.Close() // the browser has them
	var reading sync.WaitGroup
	reading.Go(func() { p.read(answers) })
	tb.Cleanup(func() {
		_ = p.call(context.Background(), "", "Browser.close", nil, nil) // or it is killed
		process.Wait(tb)
		_, _ = requests.Close(), answers.Close()
		reading.Wait()
	})
	var target struct{ TargetID string }
	p.must(tb, "", "Target.createTarget", args{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	p.must(tb, "", "Target.attachToTarget", args{"targetId": target.TargetID, "flatten": true}, &attached)
	p.session = attached.SessionID
	p.must(tb, p.session, "Emulation.setDeviceMetricsOverride", args{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
	}, nil)
	return p
}

type args map[string]any

// read hands each answer to the one who waits for it, until the browser ends.
func (p *Page) read(answers *os.File) {
	r := bufio.NewReader(answers)
	for {
		text, err := r.ReadBytes(0)
		var m message
		if err == nil {
			err = json.Unmarshal(text[:len(text)-1], &m)
		}
		p.mu.Lock()
		if err != nil {
			p.err = fmt.Errorf("the browser has ended: %w", err)
			for _, answer := range p.waiting {
				close(answer)
			}
			p.mu.Unlock()
			return
		}
		answer := p.waiting[m.ID] // events have no ID
		delete(p.waiting, m.ID)
		p.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
}

// call has the browser do something and tell what came of it.
func (p *Page) call(ctx context.Context, session, method string, params args, result any) error {
	ctx, cancel := context.WithTimeout(ctx, proc.Patience)
	defer cancel()
	id, answer := p.lastID.Add(1), make(chan message, 1)
	p.mu.Lock()
	if p.err != nil {
		defer p.mu.Unlock()
		return p.err
	}
	p.waiting[id] = answer
	p.mu.Unlock()
	request := args{"id": id, "method": method}
	if params != nil {
		request["params"] = params
	}
	if session != "" {
		request["sessionId"] = session
	}
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if _, err := p.requests.Write(append(text, 0)); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, context.Cause(ctx))
	case m, ok := <-answer:
		switch {
		case !ok:
			return fmt.Errorf("%s: %w", method, p.err)
		case m.Error != nil:
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		case result != nil:
			return json.Unmarshal(m.Result, result)
		}
		return nil
	}
}

func (p *Page) must(tb testing.TB, session, method string, params args, result any) {
	tb.Helper()
	if err := p.call(tb.Context(), session, method, params, result); err != nil {
		tb.Fatal(err)
	}
}

// Go leads to an address. It doesn't wait for what the page loads.
func (p *Page) Go(tb testing.TB, url string) {
	tb.Helper()
	p.must(tb, p.session, "Page.navigate", args{"url": url}, nil)
}

// Eval runs JavaScript in the page, waits where that gives a promise, and reads
// what it gives into a value.
func (p *Page) Eval(tb testing.TB, script string, value any) {
	tb.Helper()
	if err := p.eval(tb.Context(), script, value); err != nil {
		tb.Fatal(err)
	}
}

func (p *Page) eval(ctx context.Context, script string, value any) error {
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Exception struct{ Description string }
		}
	}
	params := args{"expression": script, "returnByValue": true, "awaitPromise": true}
	if err := p.call(ctx, p.session, "Runtime.evaluate", params, &got); err != nil {
		return err
	}
	if got.ExceptionDetails != nil {
		return errors.New(got.ExceptionDetails.Exception.Description)
	}
	if value == nil || len(got.Result.Value) == 0 {
		return nil
	}
	return json.Unmarshal(got.Result.Value, value)
}

// Screenshot is the page as a PNG, from its top to a height in CSS pixels.
func (p *Page) Screenshot(tb testing.TB, height float64) []byte {
	tb.Helper()
	var got struct{ Data string }
	p.must(tb, p.session, "Page.captureScreenshot", args{
		"format": "png", "clip": args{"x": 0, "y": 0, "width": p.width, "height": height, "scale": 1},
	}, &got)
	png, err := base64.StdEncoding.DecodeString(got.Data)
	if err != nil {
		tb.Fatal(err)
	}
	return png
}
