import io.socket.client.Ack;
import io.socket.client.IO;
import io.socket.client.Socket;
import io.socket.emitter.Emitter;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

/**
 * Sockets of the library io.socket:socket.io-client, which another program controls.
 *
 * <p>Each line of the standard input is a command, and each line of the standard output an event of
 * a socket, both as JSON. Bytes are objects with the field base64.
 *
 * <pre>
 * {"do":"connect","socket":1,"url":"http://localhost:8080/chat","auth":{},"transports":["polling"]}
 * {"do":"emit","socket":1,"event":"add","args":[1,2],"ack":7}
 * {"do":"disconnect","socket":1}
 *
 * {"socket":1,"event":"connect","args":["ID of the socket"]}
 * {"socket":1,"event":"acknowledged","args":[7,3]}
 * </pre>
 */
public final class SocketIoClient {
    private static final Map<Integer, Socket> SOCKETS = new HashMap<>();

    private SocketIoClient() {}

    public static void main(String[] arguments) throws Exception {
        var input = new InputStreamReader(System.in, StandardCharsets.UTF_8);
        try (var lines = new BufferedReader(input)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                obey(new JSONObject(line));
            }
        }
        // The threads of the library would keep the program running.
        System.exit(0);
    }

    private static void obey(JSONObject command) throws JSONException, IOException {
        int id = command.getInt("socket");
        switch (command.getString("do")) {
            case "connect" -> connect(id, command);
            case "disconnect" -> SOCKETS.get(id).disconnect();
            case "emit" -> emit(id, command);
            default -> throw new IllegalArgumentException(command.toString());
        }
    }

    private static void connect(int id, JSONObject command) throws JSONException {
        var auth = new HashMap<String, String>();
        var given = command.getJSONObject("auth");
        for (var names = given.keys(); names.hasNext(); ) {
            var name = (String) names.next();
            auth.put(name, given.getString(name));
        }
        var options =
                IO.Options.builder()
                        .setAuth(auth)
                        .setForceNew(true)
                        .setReconnectionDelay(50)
                        .setReconnectionDelayMax(200);
        if (command.has("transports")) {
            var transports = command.getJSONArray("transports");
            var names = new String[transports.length()];
            for (int index = 0; index < names.length; index++) {
                names[index] = transports.getString(index);
            }
            options.setTransports(names);
        }
        var socket = IO.socket(URI.create(command.getString("url")), options.build());
        SOCKETS.put(id, socket);
        socket.on(Socket.EVENT_CONNECT, none -> report(id, "connect", socket.id()));
        for (var event : new String[] {Socket.EVENT_CONNECT_ERROR, Socket.EVENT_DISCONNECT}) {
            socket.on(event, values -> report(id, event, values));
        }
        Emitter.Listener any =
                values -> {
                    var rest = new Object[values.length - 1];
                    System.arraycopy(values, 1, rest, 0, rest.length);
                    report(id, (String) values[0], rest);
                };
        socket.onAnyIncoming(any);
        socket.connect();
    }

    private static void emit(int id, JSONObject command) throws JSONException {
        var given = command.getJSONArray("args");
        var values = new Object[given.length()];
        for (int index = 0; index < values.length; index++) {
            values[index] = decoded(given.get(index));
        }
        var event = command.getString("event");
        if (!command.has("ack")) {
            SOCKETS.get(id).emit(event, values);
            return;
        }
        int number = command.getInt("ack");
        Ack ack =
                answers -> {
                    var all = new Object[answers.length + 1];
                    all[0] = number;
                    System.arraycopy(answers, 0, all, 1, answers.length);
                    report(id, "acknowledged", all);
                };
        SOCKETS.get(id).emit(event, values, ack);
    }

    private static void report(int id, String event, Object... values) {
        try {
            var args = new JSONArray();
            for (var value : values) {
                args.put(encoded(value));
            }
            var line = new JSONObject().put("socket", id).put("event", event).put("args", args);
            synchronized (System.out) {
                System.out.println(line);
            }
        } catch (JSONException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Replaces bytes by objects. */
    private static Object encoded(Object value) throws JSONException {
        if (value instanceof byte[] bytes) {
            return new JSONObject().put("base64", Base64.getEncoder().encodeToString(bytes));
        }
        if (value instanceof Throwable error) {
            return error.toString();
        }
        if (value instanceof JSONArray array) {
            var copy = new JSONArray();
            for (int index = 0; index < array.length(); index++) {
                copy.put(encoded(array.get(index)));
            }
            return copy;
        }
        if (value instanceof JSONObject object) {
            var copy = new JSONObject();
            for (var names = object.keys(); names.hasNext(); ) {
                var name = (String) names.next();
                copy.put(name, encoded(object.get(name)));
            }
            return copy;
        }
        return value == null ? JSONObject.NULL : value;
    }

    /** Replaces objects by the bytes that they stand for. */
    private static Object decoded(Object value) throws JSONException {
        if (value instanceof JSONArray array) {
            var copy = new JSONArray();
            for (int index = 0; index < array.length(); index++) {
                copy.put(decoded(array.get(index)));
            }
            return copy;
        }
        if (value instanceof JSONObject object) {
            if (object.has("base64")) {
                return Base64.getDecoder().decode(object.getString("base64"));
            }
            var copy = new JSONObject();
            for (var names = object.keys(); names.hasNext(); ) {
                var name = (String) names.next();
                copy.put(name, decoded(object.get(name)));
            }
            return copy;
        }
        return value;
    }
}
