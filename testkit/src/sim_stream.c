/* Streams: two halves of bytes in flight, with ends of file, resets and partitions. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sim_conn *jzi_sim_conn_new(const char *address, const char *client)
{
    sim_conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL) {
        return NULL;
    }
    (void)snprintf(conn->address, sizeof conn->address, "%s", address);
    (void)snprintf(conn->client, sizeof conn->client, "%s", client);
    conn->refs = 1;
    for (int side = 0; side < 2; side++) {
        conn->fd[side] = -1;
        conn->half[side].fin_due = SIM_NEVER;
    }
    return conn;
}

static uint64_t half_due(jzx_sim *sim, sim_half *half)
{
    uint64_t due = sim->now + jzi_sim_latency(sim);
    if (due < half->last_due) {
        due = half->last_due;
    }
    half->last_due = due;
    return due;
}

/* Makes readable what has arrived by now. */
static void half_advance(jzx_sim *sim, const sim_conn *conn, sim_half *half)
{
    if (conn->held) {
        return;
    }
    while (half->flight_count > 0 && half->flight[half->flight_first].due <= sim->now) {
        half->arrived += half->flight[half->flight_first].len;
        half->flight_first = (half->flight_first + 1) % SIM_FLIGHTS;
        half->flight_count--;
    }
    if (half->flight_count == 0 && half->fin_due <= sim->now) {
        half->fin_arrived = true;
    }
}

static void half_end(jzx_sim *sim, sim_half *half)
{
    if (half->fin_due == SIM_NEVER) {
        half->fin_due = half_due(sim, half);
    }
}

static void half_fly(jzx_sim *sim, sim_half *half, size_t len)
{
    uint64_t due = half_due(sim, half);
    uint32_t last = (half->flight_first + half->flight_count + SIM_FLIGHTS - 1) % SIM_FLIGHTS;
    if (half->flight_count > 0 &&
        (half->flight[last].due == due || half->flight_count == SIM_FLIGHTS)) {
        half->flight[last].due = due;
        half->flight[last].len += len;
        return;
    }
    uint32_t next = (half->flight_first + half->flight_count) % SIM_FLIGHTS;
    half->flight[next].due = due;
    half->flight[next].len = len;
    half->flight_count++;
}

static void half_copy_in(sim_half *half, const uint8_t *from, size_t n)
{
    size_t at = (half->start + half->used) % SIM_BUFFER;
    size_t first = n < SIM_BUFFER - at ? n : SIM_BUFFER - at;
    memcpy(half->bytes + at, from, first);
    memcpy(half->bytes, from + first, n - first);
    half->used += n;
}

static void half_copy_out(sim_half *half, uint8_t *to, size_t n)
{
    size_t first = n < SIM_BUFFER - half->start ? n : SIM_BUFFER - half->start;
    memcpy(to, half->bytes + half->start, first);
    memcpy(to + first, half->bytes, n - first);
    half->start = (half->start + n) % SIM_BUFFER;
    half->used -= n;
    half->arrived -= n;
}

void jzi_sim_conn_drop(jzx_sim *sim, sim_conn *conn, int side)
{
    half_end(sim, &conn->half[side]);
    conn->half[!side].reader_gone = true;
    conn->fd[side] = -1;
    conn->refs--;
    if (conn->refs > 0) {
        return;
    }
    free(conn->half[0].bytes);
    free(conn->half[1].bytes);
    free(conn);
}

void jzi_sim_conn_hold(jzx_sim *sim, sim_conn *conn, bool held)
{
    /* What arrived before the partition began stays arrived. */
    half_advance(sim, conn, &conn->half[0]);
    half_advance(sim, conn, &conn->half[1]);
    conn->held = held;
}

/* A writer learns that its reader is gone when that end's end of file reaches it. */
static bool peer_known_gone(jzx_sim *sim, sim_fd *f)
{
    sim_half *in = &f->conn->half[!f->side];
    half_advance(sim, f->conn, in);
    return f->conn->half[f->side].reader_gone && in->fin_arrived;
}

uint32_t jzi_sim_stream_ready(jzx_sim *sim, sim_fd *f)
{
    sim_conn *conn = f->conn;
    if (conn->reset) {
        return JZX_IO_READ | JZX_IO_WRITE | JZX_IO_HANGUP | JZX_IO_ERROR;
    }
    sim_half *in = &conn->half[!f->side];
    sim_half *out = &conn->half[f->side];
    uint32_t ready = 0;
    half_advance(sim, conn, in);
    if (in->arrived > 0 || in->fin_arrived) {
        ready |= JZX_IO_READ;
    }
    if (out->used < SIM_BUFFER || out->fin_due != SIM_NEVER) {
        ready |= JZX_IO_WRITE;
    }
    if (in->fin_arrived && (out->reader_gone || out->fin_due != SIM_NEVER)) {
        ready |= JZX_IO_WRITE | JZX_IO_HANGUP;
    }
    return ready;
}

uint64_t jzi_sim_stream_due(jzx_sim *sim, sim_fd *f)
{
    sim_half *in = &f->conn->half[!f->side];
    if (f->conn->held || f->conn->reset) {
        return SIM_NEVER;
    }
    half_advance(sim, f->conn, in);
    return in->flight_count > 0 ? in->flight[in->flight_first].due : in->fin_due;
}

size_t jzi_sim_stream_room(jzx_sim *sim, sim_fd *f, bool write)
{
    sim_half *in = &f->conn->half[!f->side];
    half_advance(sim, f->conn, in);
    return write ? SIM_BUFFER - f->conn->half[f->side].used : in->arrived;
}

jzx_err jzi_sim_stream_read(jzx_sim *sim, sim_fd *f, void *buf, size_t len, size_t *out_n)
{
    sim_half *in = &f->conn->half[!f->side];
    if (f->conn->reset) {
        return JZX_ERR_CONN_RESET;
    }
    half_advance(sim, f->conn, in);
    if (in->arrived == 0) {
        if (!in->fin_arrived) {
            return JZX_ERR_AGAIN;
        }
        *out_n = 0;
        return JZX_OK;
    }
    size_t n = len < in->arrived ? len : in->arrived;
    half_copy_out(in, buf, n);
    *out_n = n;
    return JZX_OK;
}

jzx_err jzi_sim_stream_write(jzx_sim *sim, sim_fd *f, const void *buf, size_t len, size_t *out_n)
{
    sim_half *out = &f->conn->half[f->side];
    if (f->conn->reset || out->fin_due != SIM_NEVER || peer_known_gone(sim, f)) {
        return JZX_ERR_CONN_RESET;
    }
    if (out->bytes == NULL) {
        out->bytes = malloc(SIM_BUFFER);
        if (out->bytes == NULL) {
            return JZX_ERR_NO_MEMORY;
        }
    }
    size_t room = SIM_BUFFER - out->used;
    if (room == 0 && len > 0) {
        return JZX_ERR_AGAIN;
    }
    size_t n = len < room ? len : room;
    if (n > 0) {
        half_copy_in(out, buf, n);
        half_fly(sim, out, n);
    }
    *out_n = n;
    return JZX_OK;
}

void jzi_sim_stream_shutdown(jzx_sim *sim, sim_fd *f)
{
    half_end(sim, &f->conn->half[f->side]);
}
