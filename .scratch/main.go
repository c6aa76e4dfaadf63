package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"lifthouse/engine/embedded"

	"github.com/ClickHouse/clickhouse-go/v2"
)

func cpu() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func main() {
	e, err := embedded.Open(context.Background(), os.Args[1], embedded.Options{})
	if err != nil {
		panic(err)
	}
	defer e.Close()
	o := e.ClientOptions()
	o.Auth.Database = "lifthouse"
	conn, err := clickhouse.Open(o)
	if err != nil {
		panic(err)
	}
	text, _ := os.ReadFile(os.Args[2])
	type st struct {
		sql       string
		cpu, wall []float64
	}
	var all []*st
	for _, s := range strings.Split(string(text), ";\n") {
		if strings.TrimSpace(s) != "" {
			all = append(all, &st{sql: s})
		}
	}
	rounds := 9
	if len(os.Args) > 3 {
		fmt.Sscan(os.Args[3], &rounds)
	}
	for round := range rounds {
		for _, s := range all {
			at, c := time.Now(), cpu()
			rows, err := conn.Query(context.Background(), s.sql)
			if err != nil {
				fmt.Println(s.sql, err)
				os.Exit(1)
			}
			n := 0
			for rows.Next() {
				n++
				if rounds == 1 {
					vals := make([]any, len(rows.Columns()))
					types := rows.ColumnTypes()
					for i := range vals {
						vals[i] = reflect.New(types[i].ScanType()).Interface()
					}
					_ = round
					if err := rows.Scan(vals...); err != nil {
						fmt.Println(err)
					}
					for _, v := range vals {
						fmt.Printf("%v\t", deref(v))
					}
					fmt.Println()
				}
			}
			if rows.Err() != nil {
				fmt.Println(rows.Err())
			}
			rows.Close()
			s.cpu = append(s.cpu, float64(cpu()-c)/1e6)
			s.wall = append(s.wall, float64(time.Since(at))/1e6)
		}
	}
	for _, s := range all {
		slices.Sort(s.cpu)
		slices.Sort(s.wall)
		name, _, _ := strings.Cut(strings.TrimSpace(s.sql), "\n")
		fmt.Printf("%7.1f cpu %7.1f wall  %s\n", s.cpu[len(s.cpu)/2], s.wall[len(s.wall)/2], name)
	}
}


func deref(v any) any { return reflect.ValueOf(v).Elem().Interface() }
