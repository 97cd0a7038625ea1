// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/web"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// webFlags is the command line of nixlring web.
type webFlags struct {
	watchFlags
	listen string
	length time.Duration
}

func (f *webFlags) complete(cmd *cobra.Command, w world, args []string) error {
	if err := f.watchFlags.complete(cmd, w, args); err != nil {
		return err
	}
	return f.completeBackend(cmd, args, &f.length, liveLength, "for")
}

func newWeb(w world) *cobra.Command {
	var f webFlags
	cmd := &cobra.Command{
		Use:   "web [DIR|RECORDING]",
		Short: "Show in a browser what is wrong with agents, live",
		Long: fmt.Sprintf(`Web serves a page about agents, and prints its address. The page shows first
what is wrong, as nixlring why explains it; then the agents, those with problems
first; and then speeds, transfer times and sizes, errors, and the fill of the
rings since the page was opened, for up to 30 minutes. Each agent has a
page with its slowest transfers; Enter opens that of the first row.

`+sourceHelp+`

`+backendHelp+`
It starts with the past that --for selects, and then continues live unless --at is
set.

The page needs no backend and no other host, and changes nothing. Only programs on
this host can open it, including those of other users. For another host, use a
tunnel: ssh -L 9470:127.0.0.1:9470 HOST`, "web", "web"),
		Example: `  nixlring web
  nixlring web /run/nixl --include 'prefill-*'
  nixlring web /run/nixl --listen 127.0.0.1:0`,
		Args: takes,
		RunE: watching(&f, w),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.listen, "listen", "l", "127.0.0.1:9470", "`ADDRESS` of this host to listen on; port 0 is any free port")
	f.register(cmd, "show")
	f.registerBackend(flags)
	f.backend.Shown = true
	flags.DurationVar(&f.length, "for", liveLength, "with --prometheus, how much of the past to start with")
	return cmd
}

func (f *webFlags) run(ctx context.Context, w world) (err error) {
	if _, _, err := net.SplitHostPort(f.listen); err != nil {
		return usagef("--listen %s: must be an address and a port, such as 127.0.0.1:9470", f.listen)
	}
	// Reading each ring twice per run interval would double the cost. A page shows the highest fill of five
	// readings, and a ring is read more often if it fills faster.
	f.runInterval *= 8
	source, err := f.open(w, web.Interval, true, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w; choose another port, or 0 for any", err)
	}
	address, err := netip.ParseAddrPort(l.Addr().String())
	if err == nil && !address.Addr().IsLoopback() {
		err = usagef("--listen %s: other hosts could open the page; use an address of this host, such as 127.0.0.1:9470, and a tunnel", f.listen)
	}
	if err == nil {
		_, err = fmt.Fprintf(w.out, "http://%s/\n", address)
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	search := func() []diagnose.Process { return processes(w) }
	if f.past() {
		search = nil
	}
	window := web.Window
	if f.backend.URL != "" {
		window = backendWindow
	}
	page := web.New(source.Name(), window)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		served <- page.Serve(ctx, l)
		stop()
	}()
	page.Run(ctx, source, search)
	return <-served
}
