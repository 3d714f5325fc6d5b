// The judge of PromQL: Prometheus' own engine over the samples of a file, or over those that remote_read gives,
// asked by lines of standard input.
//
//	promjudge SAMPLES    each line: ["metric",{"label":"value"},[[ms,value],…]]
//	promjudge URL        of remote_read
//
// A value is a number, or a native histogram: {"sum":1.5,"zero":1,"schema":4,"limit":0,"positive":[[index,count],…],
// "negative":[…]}, indexes ascending; "limit": numbers up to it count as zero.
// A question is a line {"query","start","end","step"} in ms, step 0: an instant. Its answer is a line
// {"type":"matrix","result":[{"metric":{},"values":[[ms,"1"],…],"histograms":[[ms,{…}],…]}]} or {"error":"…"}. A
// histogram is as in Prometheus' API.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	jsoniter "github.com/json-iterator/go"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/jsonutil"
)

type question struct {
	Query            string
	Start, End, Step int64
}

type series struct {
	Metric     map[string]string `json:"metric"`
	Values     [][2]any          `json:"values"`
	Histograms [][2]any          `json:"histograms,omitempty"`
}

type answer struct {
	Type   string   `json:"type,omitempty"`
	Result []series `json:"result"`
	Error  string   `json:"error,omitempty"`
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "promjudge:", err)
		os.Exit(1)
	}
}

type sample struct {
	labels    labels.Labels
	ms        int64
	value     float64
	histogram *histogram.Histogram // nil: a number
}

// A histogram of a line.
type lineHistogram struct {
	Sum                float64
	Zero               uint64
	Schema             int32
	Limit              float64
	Positive, Negative [][2]int64
}

// Spans and deltas of buckets.
func buckets(of [][2]int64) (spans []histogram.Span, deltas []int64, count uint64) {
	var next, before int64
	for i, bucket := range of {
		if i == 0 || bucket[0] != next {
			spans = append(spans, histogram.Span{Offset: int32(bucket[0] - next)})
		}
		spans[len(spans)-1].Length++
		deltas = append(deltas, bucket[1]-before)
		next, before = bucket[0]+1, bucket[1]
		count += uint64(bucket[1])
	}
	return spans, deltas, count
}

func (l lineHistogram) native() *histogram.Histogram {
	h := &histogram.Histogram{CounterResetHint: histogram.GaugeType, Schema: l.Schema, Sum: l.Sum, ZeroCount: l.Zero, ZeroThreshold: l.Limit}
	var positive, negative uint64
	h.PositiveSpans, h.PositiveBuckets, positive = buckets(l.Positive)
	h.NegativeSpans, h.NegativeBuckets, negative = buckets(l.Negative)
	h.Count = l.Zero + positive + negative
	return h
}

// In the order of time, as they would be scraped.
func read(path string) []sample {
	file, err := os.Open(path)
	check(err)
	defer file.Close()
	var all []sample
	lines := json.NewDecoder(bufio.NewReader(file))
	for lines.More() {
		var name string
		var metric map[string]string
		var values [][2]json.RawMessage
		check(lines.Decode(&[]any{&name, &metric, &values}))
		metric[labels.MetricName] = name
		for _, value := range values {
			one := sample{labels: labels.FromMap(metric)}
			check(json.Unmarshal(value[0], &one.ms))
			if value[1][0] == '{' {
				var l lineHistogram
				check(json.Unmarshal(value[1], &l))
				one.histogram = l.native()
				check(one.histogram.Validate())
			} else {
				check(json.Unmarshal(value[1], &one.value))
			}
			all = append(all, one)
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].ms < all[j].ms })
	return all
}

func load(db *tsdb.DB, path string) {
	appender := db.Appender(context.Background())
	for _, one := range read(path) {
		var err error
		if one.histogram != nil {
			_, err = appender.AppendHistogram(0, one.labels, one.ms, one.histogram, nil)
		} else {
			_, err = appender.Append(0, one.labels, one.ms, one.value)
		}
		check(err)
	}
	check(appender.Commit())
}

func point(ms int64, value float64) [2]any {
	text := strconv.FormatFloat(value, 'g', -1, 64)
	if math.IsNaN(value) {
		text = "NaN"
	}
	return [2]any{ms, text}
}

func histogramPoint(ms int64, h *histogram.FloatHistogram) [2]any {
	stream := jsoniter.NewStream(jsoniter.ConfigDefault, nil, 512)
	jsonutil.MarshalHistogram(h, stream)
	return [2]any{ms, json.RawMessage(stream.Buffer())}
}

func ask(engine *promql.Engine, db storage.Queryable, q question) answer {
	start, end := time.UnixMilli(q.Start), time.UnixMilli(q.End)
	var query promql.Query
	var err error
	if q.Step == 0 {
		query, err = engine.NewInstantQuery(context.Background(), db, nil, q.Query, start)
	} else {
		query, err = engine.NewRangeQuery(context.Background(), db, nil, q.Query, start, end,
			time.Duration(q.Step)*time.Millisecond)
	}
	if err != nil {
		return answer{Error: err.Error()}
	}
	defer query.Close()
	result := query.Exec(context.Background())
	if result.Err != nil {
		return answer{Error: result.Err.Error()}
	}
	a := answer{Type: string(result.Value.Type()), Result: []series{}}
	switch value := result.Value.(type) {
	case promql.Scalar:
		a.Result = append(a.Result, series{Metric: map[string]string{}, Values: [][2]any{point(value.T, value.V)}})
	case promql.Vector:
		for _, sample := range value {
			s := series{Metric: sample.Metric.Map()}
			if sample.H != nil {
				s.Histograms = [][2]any{histogramPoint(sample.T, sample.H)}
			} else {
				s.Values = [][2]any{point(sample.T, sample.F)}
			}
			a.Result = append(a.Result, s)
		}
	case promql.Matrix:
		for _, one := range value {
			s := series{Metric: one.Metric.Map()}
			for _, p := range one.Floats {
				s.Values = append(s.Values, point(p.T, p.F))
			}
			for _, p := range one.Histograms {
				s.Histograms = append(s.Histograms, histogramPoint(p.T, p.H))
			}
			a.Result = append(a.Result, s)
		}
	}
	return a
}

// The samples of a file, in a database of their own.
func open(dir, path string) *tsdb.DB {
	db, err := tsdb.Open(dir, promslog.NewNopLogger(), nil, tsdb.DefaultOptions(), nil)
	check(err)
	load(db, path)
	return db
}

// The samples of another server.
func remoteRead(address string) storage.Queryable {
	parsed, err := url.Parse(address)
	check(err)
	client, err := remote.NewReadClient("judge", &remote.ClientConfig{
		URL: &config.URL{URL: parsed}, Timeout: model.Duration(time.Minute), ChunkedReadLimit: 1 << 26,
		HTTPClientConfig: config.DefaultHTTPClientConfig,
	})
	check(err)
	noStart := func() (int64, error) { return math.MaxInt64, nil }
	return remote.NewSampleAndChunkQueryableClient(client, labels.EmptyLabels(), nil, true, noStart)
}

func main() {
	var samples storage.Queryable
	if strings.HasPrefix(os.Args[1], "http:") {
		samples = remoteRead(os.Args[1])
	} else {
		dir, err := os.MkdirTemp("", "promjudge")
		check(err)
		defer os.RemoveAll(dir)
		db := open(dir, os.Args[1])
		defer db.Close()
		samples = db
	}
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: promslog.NewNopLogger(), MaxSamples: 50_000_000, Timeout: time.Minute,
		EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return int64(time.Minute / time.Millisecond) },
		Parser:                   parser.NewParser(parser.Options{}),
	})
	questions := json.NewDecoder(bufio.NewReader(os.Stdin))
	answers := json.NewEncoder(os.Stdout)
	for questions.More() {
		var q question
		check(questions.Decode(&q))
		check(answers.Encode(ask(engine, samples, q)))
	}
}
