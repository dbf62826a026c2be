package main

import (
	"io"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsflate"
	"github.com/gobwas/ws/wsutil"
)

// echoCompressed is echo with permessage-deflate, based on the library's example for the Autobahn
// test suite.
func echoCompressed(c *connection) error {
	var compression wsflate.MessageState
	c.reader.State |= ws.StateExtended
	c.reader.Extensions = []wsutil.RecvExtension{&compression}
	// The reader would check the compressed bytes.
	c.reader.CheckUTF8 = false

	writer := wsutil.NewWriter(c, state|ws.StateExtended, 0)
	writer.SetExtensions(&compression)
	inflater := wsflate.NewReader(nil, wsflate.DefaultHelper.Decompressor)
	deflater := wsflate.NewWriter(nil, wsflate.DefaultHelper.Compressor)
	utf8 := wsutil.NewUTF8Reader(nil)
	for {
		opcode, err := c.next()
		if err != nil {
			return err
		}
		var payload io.Reader = c.reader
		if compression.IsCompressed() {
			inflater.Reset(payload)
			payload = inflater
		}
		utf8.Reset(payload)
		if opcode == ws.OpText {
			payload = utf8
		}
		compression.SetCompressed(true)
		writer.ResetOp(opcode)
		deflater.Reset(writer)
		if _, err := io.Copy(deflater, payload); err != nil {
			return err
		}
		if !utf8.Valid() {
			return wsutil.ErrInvalidUTF8
		}
		if err := deflater.Close(); err != nil {
			return err
		}
		if err := writer.Flush(); err != nil {
			return err
		}
	}
}
