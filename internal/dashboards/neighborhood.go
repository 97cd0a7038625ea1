// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

// neighborhood returns rows with metrics of other programs, which don't have the labels of agents.
func neighborhood() []Row {
	const gpu, port, device = "{{Hostname}} GPU {{gpu}}", "{{instance}} {{device}} port {{port}}", "{{instance}} {{device}}"
	// both returns a panel of the bytes that something sends and receives.
	both := func(title, description, by, legend, sent, received string) Panel {
		p := lines(title, description, BytesPerSecond, "sum by ("+by+") ("+sent+")", legend+" sent").many()
		p.Queries = append(p.Queries, Query{Expr: "sum by (" + by + ") (" + received + ")", Legend: legend + " received"})
		return p
	}
	rate := func(metric string) string { return "rate(" + metric + "[@])" }
	// VLLM's names have a colon, which VictoriaMetrics replaces if it receives them over OTLP.
	const vllm, dynamo = "model_name", "model"
	const running = `num_requests_running{model_name=~"$model"}`
	first := func(prefix string) string {
		return ofModel(vllm, prefix+"time_to_first_token_seconds").quantile("0.99", vllm)
	}
	perModel := func(title string, unit Unit, ofVLLM, ofDynamo string) Panel {
		p := lines(title, "By model. Needs vLLM's metrics or Dynamo's frontend.", unit, ofDynamo, "{{"+dynamo+"}} (Dynamo)")
		if ofVLLM != "" {
			p.Queries = append(p.Queries, Query{Expr: ofVLLM, Legend: "{{" + vllm + "}} (vLLM)"})
		}
		return p
	}
	return []Row{
		{Title: "NIC (needs node_exporter)", Panels: []Panel{
			both("InfiniBand and RoCE", "Bytes of each port of an RDMA device. Needs node_exporter.", "instance, device, port", port,
				rate("node_infiniband_port_data_transmitted_bytes_total"), rate("node_infiniband_port_data_received_bytes_total")),
			lines("InfiniBand and RoCE, errors", "Received packets with errors, and discarded packets. Needs node_exporter.", PerSecond,
				"sum by (instance, device, port) (rate(node_infiniband_port_errors_received_total[@]) + rate(node_infiniband_port_discards_transmitted_total[@]))", port).many(),
			both("Network", "Bytes of each network device. RDMA isn't included. Needs node_exporter.", "instance, device", device,
				rate(`node_network_transmit_bytes_total{device!="lo"}`), rate(`node_network_receive_bytes_total{device!="lo"}`)),
		}, Optional: true},
		{Title: "GPU (needs the DCGM exporter)", Panels: []Panel{
			both("NVLink", "Bytes of each GPU over NVLink. Needs the DCGM exporter.", "Hostname, gpu", gpu, "DCGM_FI_PROF_NVLINK_TX_BYTES", "DCGM_FI_PROF_NVLINK_RX_BYTES"),
			both("PCIe", "Bytes of each GPU over PCIe. Needs the DCGM exporter.", "Hostname, gpu", gpu, "DCGM_FI_PROF_PCIE_TX_BYTES", "DCGM_FI_PROF_PCIE_RX_BYTES"),
			lines("Copy utilization", "Share of the time in which each GPU's memory was read or written. Needs the DCGM exporter.", Percent,
				"max by (Hostname, gpu) (DCGM_FI_DEV_MEM_COPY_UTIL)", gpu).many().upTo(100),
		}, Optional: true},
		{Title: "Serving (needs vLLM or Dynamo)", Panels: []Panel{
			perModel("Time to first token, 99th percentile", Seconds, either(first("vllm:"), first("vllm_")),
				ofModel(dynamo, "dynamo_frontend_time_to_first_token_seconds").quantile("0.99", dynamo)),
			perModel("Running requests", Count, `sum by (model_name) (vllm:`+running+` or vllm_`+running+`)`,
				`sum by (model) (dynamo_frontend_inflight_requests{model=~"$model"})`),
			perModel("Time between tokens, 99th percentile", Seconds, "",
				ofModel(dynamo, "dynamo_frontend_inter_token_latency_seconds").quantile("0.99", dynamo)),
		}, Optional: true},
	}
}

// ofModel returns a histogram of another program, with a label of the model's name.
func ofModel(label, name string) histogram {
	return histogram{name: name, matchers: label + `=~"$model"`, foreign: true}
}
