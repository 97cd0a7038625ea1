package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/bridge/session"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/place"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/render"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/sessionplot"
)

func newSession(w world) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "Look at sessions of split inference",
		Long: `Session looks at what the recorder of a split-inference pipeline wrote: a CSV with a
row per work packet, and a JSON summary at its end.`,
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAnalyze(w))
	return cmd
}

// analyzeFlags is the command line of nixlring session analyze.
type analyzeFlags struct {
	plot   string
	all    bool
	format *output
	output *output
}

func newAnalyze(w world) *cobra.Command {
	var f analyzeFlags
	cmd := &cobra.Command{
		Use:   "analyze [FILE|DIR]",
		Short: "Report on a session, and draw it",
		Long: fmt.Sprintf(`Analyze reports on the session of a CSV file, or on the newest one of a directory
(%s if none is named): its packets overall, the time per worker and per layer,
the five slowest packets, the failures, and the summary that the session wrote.
The session may still be running, or have crashed. Sessions of the Python
program with the same columns are read, too.

JSON has all workers. What the CSV doesn't say, such as tokens, is null in its
summary; written_summary is what the session itself wrote at its end.

With --plot it draws four pictures into a directory: the time per operation and
per layer, the timeline, and the distribution of durations.

`, session.DefaultDir) + exitCodes,
		Example: `  nixlring session analyze
  nixlring session analyze telemetry/run1.csv --plot plots
  nixlring session analyze --output json --plot plots --format svg`,
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			path := ""
			if len(args) > 0 {
				path = args[0]
			}
			return f.run(w, path)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVarP(&f.all, "all", "a", false, "list all workers, not only the 20 that took the most time")
	flags.StringVar(&f.plot, "plot", "", "draw into `DIR`, which is made if need be")
	f.format = &output{value: sessionplot.Formats()[0], formats: sessionplot.Formats()}
	flags.Var(f.format, "format", "draw as `FORMAT`: png, svg")
	f.output = addOutput(cmd, "text", "json")
	complete(cmd, "format", sessionplot.Formats())
	return cmd
}

func (f *analyzeFlags) run(w world, path string) error {
	r, err := session.Analyze(path)
	if errors.Is(err, session.ErrNoSession) {
		return fmt.Errorf("%w; name the CSV of one, or another directory", err)
	}
	if err != nil {
		return place.Explain(place.Session, cmp.Or(path, session.DefaultDir), err)
	}
	if f.output.value == "json" {
		err = writeJSON(w.out, newAnalyzed(r))
	} else {
		r.AllWorkers = f.all
		_, err = r.WriteTo(w.out)
	}
	if err != nil {
		return err
	}
	if r.Empty() && f.output.value != "text" { // the text has a warning of its own
		fmt.Fprintf(w.err, "there are no packets in %s\n", render.Printable(r.Path))
	}
	if f.plot == "" {
		return nil
	}
	files, err := sessionplot.Write(r.Path, f.plot, f.format.value)
	for _, file := range files {
		fmt.Fprintf(w.err, "drawn: %s\n", render.Printable(file))
	}
	if errors.Is(err, sessionplot.ErrEmpty) {
		fmt.Fprintf(w.err, "nothing to draw\n")
		return nil
	}
	return place.Explain(place.Folder, f.plot, err)
}
