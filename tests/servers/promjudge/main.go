// The judge of PromQL: Prometheus' own engine over the samples of a file, asked by lines of standard input.
//
//	promjudge SAMPLES    each line: ["metric",{"label":"value"},[[ms,value],…]]
//
// A question is a line {"query","start","end","step"} in ms, step 0: an instant. Its answer is a line
// {"type":"matrix","result":[{"metric":{},"values":[[ms,"1"],…]}]} or {"error":"…"}.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
)

type question struct {
	Query            string
	Start, End, Step int64
}

type series struct {
	Metric map[string]string `json:"metric"`
	Values [][2]any          `json:"values"`
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
	labels labels.Labels
	ms     int64
	value  float64
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
		var values [][2]float64
		check(lines.Decode(&[]any{&name, &metric, &values}))
		metric[labels.MetricName] = name
		for _, value := range values {
			all = append(all, sample{labels.FromMap(metric), int64(value[0]), value[1]})
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].ms < all[j].ms })
	return all
}

func load(db *tsdb.DB, path string) {
	appender := db.Appender(context.Background())
	for _, one := range read(path) {
		_, err := appender.Append(0, one.labels, one.ms, one.value)
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

func ask(engine *promql.Engine, db *tsdb.DB, q question) answer {
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
		a.Result = append(a.Result, series{map[string]string{}, [][2]any{point(value.T, value.V)}})
	case promql.Vector:
		for _, sample := range value {
			a.Result = append(a.Result, series{sample.Metric.Map(), [][2]any{point(sample.T, sample.F)}})
		}
	case promql.Matrix:
		for _, one := range value {
			s := series{Metric: one.Metric.Map()}
			for _, p := range one.Floats {
				s.Values = append(s.Values, point(p.T, p.F))
			}
			a.Result = append(a.Result, s)
		}
	}
	return a
}

func main() {
	dir, err := os.MkdirTemp("", "promjudge")
	check(err)
	defer os.RemoveAll(dir)
	options := tsdb.DefaultOptions()
	db, err := tsdb.Open(dir, promslog.NewNopLogger(), nil, options, nil)
	check(err)
	defer db.Close()
	load(db, os.Args[1])
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
		check(answers.Encode(ask(engine, db, q)))
	}
}
