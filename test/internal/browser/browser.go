// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package browser lets tests load and inspect pages in Chromium.
package browser

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// Page is a tab of a headless browser.
type Page struct {
	ctx   context.Context
	width int
}

// Open starts a browser with one page, whose size is in CSS pixels. The browser
// stops at the end of the test.
func Open(tb testing.TB, program string, width, height int) *Page {
	tb.Helper()
	home := tb.TempDir() // Debian's start script reads HOME, and the browser stores its profile there
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, // the sandbox doesn't work as root
		chromedp.UserDataDir(home), chromedp.WindowSize(width, height), chromedp.WSURLReadTimeout(must.Patience),
		chromedp.Env("HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home))
	// The test's context is canceled before the cleanup runs. With that context,
	// the browser would be killed while it writes to its profile.
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(tb.Context()), options...)
	ctx, _ := chromedp.NewContext(allocator)
	p := &Page{ctx: ctx, width: width}
	tb.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil { // closes the browser and waits until it has exited
			tb.Errorf("close the browser: %v", err)
		}
		stop()
	})
	// The first action starts the browser. The browser stops when the context of
	// that action ends, so the context must not have a timeout.
	must.OK(tb, chromedp.Run(ctx, chromedp.EmulateViewport(int64(width), int64(height))))
	return p
}

func (p *Page) run(tb testing.TB, actions ...chromedp.Action) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, must.Patience)
	defer cancel()
	must.OK(tb, chromedp.Run(ctx, actions...))
}

// Go opens a URL and waits for the load event.
func (p *Page) Go(tb testing.TB, url string) {
	tb.Helper()
	p.run(tb, chromedp.Navigate(url))
}

// Eval runs JavaScript in the page and stores the result in value. If the
// result is a promise, Eval waits for it.
func (p *Page) Eval(tb testing.TB, script string, value any) {
	tb.Helper()
	p.run(tb, chromedp.Evaluate(script, value, func(e *runtime.EvaluateParams) *runtime.EvaluateParams {
		return e.WithAwaitPromise(true)
	}))
}

// Click clicks the first element that a CSS selector matches.
func (p *Page) Click(tb testing.TB, selector string) {
	tb.Helper()
	p.run(tb, chromedp.Click(selector, chromedp.ByQuery))
}

// Press presses a key on the first element that a CSS selector matches, or where the focus is if
// the selector is empty.
func (p *Page) Press(tb testing.TB, selector, key string) {
	tb.Helper()
	if selector == "" {
		p.run(tb, chromedp.KeyEvent(key))
		return
	}
	p.run(tb, chromedp.SendKeys(selector, key, chromedp.ByQuery))
}

// Screenshot returns a PNG of the page, from the top to a height in CSS pixels.
func (p *Page) Screenshot(tb testing.TB, height float64) []byte {
	tb.Helper()
	var png []byte
	p.run(tb, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		png, err = page.CaptureScreenshot().WithClip(&page.Viewport{Width: float64(p.width), Height: height, Scale: 1}).Do(ctx)
		return err
	}))
	return png
}
