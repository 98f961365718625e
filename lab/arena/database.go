package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// database is Postgres, and the cache of single items before it.
type database struct {
	pool  *pgxpool.Pool
	cache *cache
}

// defaultConnections is what the benchmark's Postgres allows, if it does not say.
const defaultConnections = 256

// openDatabase connects when the first query comes, and again when Postgres was away.
func openDatabase(ctx context.Context, url, connections string) (*database, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = defaultConnections
	if connections != "" {
		n, err := strconv.ParseInt(connections, 10, 32)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("DATABASE_MAX_CONN: %q is not a number of connections", connections)
		}
		config.MaxConns = int32(n)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &database{pool, newCache()}, nil
}

const columns = "id, name, category, price, quantity, active, tags, rating_score, rating_count"

// scan reads the columns of one row.
func scan(row pgx.CollectableRow) (item, error) {
	var i item
	err := row.Scan(&i.ID, &i.Name, &i.Category, &i.Price, &i.Quantity, &i.Active, &i.Tags, &i.Rating.Score, &i.Rating.Count)
	return i, err
}

func (db *database) query(ctx context.Context, sql string, args ...any) ([]item, error) {
	rows, err := db.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

const inRange = "SELECT " + columns + " FROM items WHERE price BETWEEN $1 AND $2 LIMIT $3"

// prices answers with items whose price is in a range; with none if there is no database, as the benchmark wants it.
func (a *app) prices(w http.ResponseWriter, r *http.Request) {
	low, err1 := number(r, "min", 10)
	high, err2 := number(r, "max", 50)
	limit, err3 := number(r, "limit", 50)
	if err := errors.Join(err1, err2, err3); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	items := []item{}
	if a.db != nil {
		found, err := a.db.query(r.Context(), inRange, low, high, min(max(limit, 1), 50))
		if err == nil && found != nil {
			items = found
		}
	}
	answer(w, http.StatusOK, struct {
		Items []item `json:"items"`
		Count int    `json:"count"`
	}{items, len(items)})
}
