package dashboards

// splitInference shows split-inference sessions.
func splitInference() Dashboard {
	const (
		byDevice    = "{{splitinfer_device}}"
		byOperation = "{{splitinfer_operation}}"
	)
	return Dashboard{
		UID: "nixl-splitinfer", Title: "NIXL / Split inference",
		Description: "Inference whose layers run as work packets on several devices.",
		Variables:   []Variable{service("splitinfer_tokens_total")},
		Rows: []Row{
			{"Tokens and packets", []Panel{
				lines("Tokens", "Read as prompt, and generated.", PerSecond,
					`sum by (splitinfer_token_type) (rate(splitinfer_tokens_total{@}[@]))`, "{{splitinfer_token_type}}"),
				lines("Packets", "Work packets that ended, by device; failed ones too.", PerSecond,
					`sum by (splitinfer_device) (rate(splitinfer_packets_total{@}[@]))`, byDevice),
				lines("Packets by worker", "Work packets that ended; failed ones too.", PerSecond,
					`sum by (splitinfer_worker) (rate(splitinfer_packets_total{@}[@]))`, "{{splitinfer_worker}}"),
			}},
			{"Time", []Panel{
				lines("Time by operation", "Seconds of work in a second: what the time goes into.", Share,
					`sum by (splitinfer_operation) (rate(splitinfer_packet_duration_seconds_sum{@}[@]))`, byOperation).stacked(),
				lines("Time of a packet, 99th percentile", "By operation.", Microseconds,
					`histogram_quantile(0.99, sum by (le, splitinfer_operation) (rate(splitinfer_packet_duration_seconds_bucket{@}[@])))`, byOperation),
				lines("Time of a packet, median", "By device.", Microseconds,
					`histogram_quantile(0.5, sum by (le, splitinfer_device) (rate(splitinfer_packet_duration_seconds_bucket{@}[@])))`, byDevice),
			}},
			{"Failures, experts and memory", []Panel{
				lines("Failed packets", "By device and type of the error.", PerSecond,
					`sum by (splitinfer_device, error_type) (rate(splitinfer_packets_total{@,error_type!=""}[@]))`, byDevice+" "+byError),
				lines("Fallbacks", "Work packets that ran on another device than the one asked for.", PerSecond,
					`sum by (splitinfer_device, splitinfer_device_used) (rate(splitinfer_packet_fallbacks_total{@}[@]))`,
					byDevice+" → {{splitinfer_device_used}}"),
				lines("Memory of a packet, median", "By device.", Bytes,
					`histogram_quantile(0.5, sum by (le, splitinfer_device) (rate(splitinfer_packet_memory_bytes_bucket{@}[@])))`, byDevice),
				lines("Expert selections by expert", "Work packets that name their expert: the balance of the model.", PerSecond,
					`sum by (splitinfer_expert) (rate(splitinfer_expert_selections_total{@,splitinfer_expert!=""}[@]))`,
					"expert {{splitinfer_expert}}").wide(12),
				lines("Expert selections by layer", "All operations.", PerSecond,
					`sum by (splitinfer_layer) (rate(splitinfer_expert_selections_total{@}[@]))`, "layer {{splitinfer_layer}}").wide(12),
			}},
		},
	}
}
