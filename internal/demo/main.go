// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command demo serves VictoriaMetrics' page with a script that enables auto-refresh. The page has no
// parameter for it.
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

//go:embed refresh.js
var refresh []byte

func main() {
	listen := flag.String("listen", "127.0.0.1:8428", "address to listen on")
	backend := flag.String("backend", "", "URL of VictoriaMetrics")
	flag.Parse()
	if err := serve(*listen, *backend); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func serve(address, backend string) error {
	target, err := url.Parse(backend)
	if err != nil {
		return fmt.Errorf("-backend: %w", err)
	}
	server := &http.Server{Addr: address, ReadHeaderTimeout: 10 * time.Second, Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Accept-Encoding") // addScript needs an uncompressed page
		},
		ModifyResponse: addScript,
		ErrorLog:       log.New(io.Discard, "", 0), // a browser may still send requests after VictoriaMetrics has stopped
	}}
	return server.ListenAndServe()
}

// addScript adds the script to the end of an HTML page.
func addScript(r *http.Response) error {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
		return nil
	}
	page, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if err := r.Body.Close(); err != nil {
		return err
	}
	end := []byte("</body>")
	page = bytes.Replace(page, end, bytes.Join([][]byte{[]byte("<script>\n"), refresh, []byte("</script>\n"), end}, nil), 1)
	r.Body = io.NopCloser(bytes.NewReader(page))
	r.ContentLength = int64(len(page))
	r.Header.Set("Content-Length", strconv.Itoa(len(page)))
	return nil
}
