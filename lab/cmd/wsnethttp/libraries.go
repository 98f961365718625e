package main

import (
	"context"
	"net"
	"net/http"

	coderws "github.com/coder/websocket"
	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	gorillaws "github.com/gorilla/websocket"
	"github.com/lxzan/gws"
)

func gorilla() library {
	var upgrader gorillaws.Upgrader
	serve := func(room *members[*gorillaws.Conn]) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			c, err := upgrader.Upgrade(w, r, nil)
			if err != nil {
				return
			}
			defer c.Close()
			room.join(c)
			defer room.leave(c)
			for {
				kind, message, err := c.ReadMessage()
				if err != nil {
					return
				}
				if err := c.WriteMessage(kind, message); err != nil {
					return
				}
			}
		}
	}
	var room members[*gorillaws.Conn]
	return library{
		echo: serve(nil),
		room: serve(&room),
		broadcast: func(data []byte) {
			m, err := gorillaws.NewPreparedMessage(gorillaws.BinaryMessage, data)
			if err != nil {
				return
			}
			room.each(func(c *gorillaws.Conn) { c.WritePreparedMessage(m) })
		},
	}
}

func gwsLibrary() library {
	serve := func(room *members[*gws.Conn]) http.HandlerFunc {
		upgrader := gws.NewUpgrader(&gwsEvents{room: room}, nil)
		return func(w http.ResponseWriter, r *http.Request) {
			c, err := upgrader.Upgrade(w, r)
			if err != nil {
				return
			}
			go c.ReadLoop() // so that what net/http keeps for a request is freed
		}
	}
	var room members[*gws.Conn]
	return library{
		echo: serve(nil),
		room: serve(&room),
		broadcast: func(data []byte) {
			b := gws.NewBroadcaster(gws.OpcodeBinary, data)
			defer b.Close()
			room.each(func(c *gws.Conn) { b.Broadcast(c) })
		},
	}
}

type gwsEvents struct {
	gws.BuiltinEventHandler
	room *members[*gws.Conn]
}

func (e *gwsEvents) OnOpen(c *gws.Conn)           { e.room.join(c) }
func (e *gwsEvents) OnClose(c *gws.Conn, _ error) { e.room.leave(c) }

func (e *gwsEvents) OnMessage(c *gws.Conn, m *gws.Message) {
	defer m.Close()
	c.WriteMessage(m.Opcode, m.Bytes())
}

func coder() library {
	serve := func(room *members[*coderws.Conn]) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			c, err := coderws.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer c.CloseNow()
			room.join(c)
			defer room.leave(c)
			for {
				kind, message, err := c.Read(r.Context())
				if err != nil {
					return
				}
				if err := c.Write(r.Context(), kind, message); err != nil {
					return
				}
			}
		}
	}
	var room members[*coderws.Conn]
	return library{
		echo: serve(nil),
		room: serve(&room),
		broadcast: func(data []byte) {
			room.each(func(c *coderws.Conn) { c.Write(context.Background(), coderws.MessageBinary, data) })
		},
	}
}

// gobwas has no buffers of its own: those of net/http are used, so that a message is one read and one write.
func gobwas() library {
	serve := func(room *members[net.Conn]) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			c, buffered, _, err := ws.UpgradeHTTP(r, w)
			if err != nil {
				return
			}
			go func() { // so that what net/http keeps for a request is freed
				defer c.Close()
				room.join(c)
				defer room.leave(c)
				for {
					message, op, err := wsutil.ReadClientData(buffered)
					if err != nil {
						return
					}
					if err := wsutil.WriteServerMessage(buffered, op, message); err != nil {
						return
					}
					if err := buffered.Flush(); err != nil {
						return
					}
				}
			}()
		}
	}
	var room members[net.Conn]
	return library{
		echo: serve(nil),
		room: serve(&room),
		broadcast: func(data []byte) {
			frame, err := ws.CompileFrame(ws.NewBinaryFrame(data))
			if err != nil {
				return
			}
			room.each(func(c net.Conn) { c.Write(frame) })
		},
	}
}
