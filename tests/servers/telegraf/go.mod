module telegraf

go 1.25

require github.com/influxdata/telegraf v1.32.0
