// Passes lines of StatsD on standard input through Telegraf's own plugins, and prints what Telegraf writes of them: its input statsd adds
// them up, its serializer makes lines of Influx. The last line of the input must be "done:1|c".
package main

import (
	"bufio"
	"io"
	"log"
	"net"
	"os"
	"time"

	"github.com/influxdata/telegraf"
	"github.com/influxdata/telegraf/metric"
	"github.com/influxdata/telegraf/plugins/inputs/statsd"
	"github.com/influxdata/telegraf/plugins/serializers/influx"
)

const last = "done"

// The methods of the interfaces that are not here are not called: a nil one would say so.
type logger struct{ telegraf.Logger }

func (logger) Errorf(format string, arguments ...interface{}) { log.Fatalf(format, arguments...) }
func (logger) Infof(string, ...interface{})                   {}
func (logger) Debugf(string, ...interface{})                  {}

type gathered struct {
	telegraf.Accumulator
	metrics []telegraf.Metric
	isDone  bool
}

func (g *gathered) AddFields(name string, fields map[string]interface{}, tags map[string]string, t ...time.Time) {
	g.isDone = g.isDone || name == last
	g.metrics = append(g.metrics, metric.New(name, tags, fields, t[0]))
}

func (g *gathered) AddCounter(name string, fields map[string]interface{}, tags map[string]string, t ...time.Time) {
	g.AddFields(name, fields, tags, t...)
}

func (g *gathered) AddGauge(name string, fields map[string]interface{}, tags map[string]string, t ...time.Time) {
	g.AddFields(name, fields, tags, t...)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	input := &statsd.Statsd{
		Protocol: "tcp", ServiceAddress: os.Args[1], MaxTCPConnections: 1, AllowedPendingMessages: 10000, NumberWorkerThreads: 1,
		MetricSeparator: ".", DataDogExtensions: true, Log: logger{},
	}
	check(input.Start(&gathered{}))
	socket, err := net.Dial("tcp", os.Args[1])
	check(err)
	_, err = io.Copy(socket, os.Stdin)
	check(err)
	check(socket.Close())
	found := &gathered{}
	for ; !found.isDone; time.Sleep(10 * time.Millisecond) {
		found = &gathered{}
		check(input.Gather(found))
	}
	lines := &influx.Serializer{SortFields: true}
	check(lines.Init())
	out := bufio.NewWriter(os.Stdout)
	for _, m := range found.metrics {
		text, err := lines.Serialize(m)
		check(err)
		_, err = out.Write(text)
		check(err)
	}
	check(out.Flush())
}
