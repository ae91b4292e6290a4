package wallaby;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;

/**
 * Writes an optimized plan down, whole, in one call: a walk from Python costs a round trip per question (a
 * TPC-H plan has a thousand questions), and Spark's own toJSON leaves out what we need most: evaluation modes,
 * files, nullability, the values of literals.
 *
 * Spark compiles this file in the driver with Janino, the compiler that it brings for its own generated code, and with it
 * those beside it that it uses. So they keep to what Janino knows: no lambdas, no inferred generics, no varargs. They
 * know nothing of what we can run: every node is written by its class, its children and its plain fields, and Python
 * decides.
 *
 * A node (PlanNodes.java): c class, k children, f fields; o the output columns of the root, of unions and of generators; an
 * expression also (PlanExpressions.java) t type, n nullable, m evaluation mode, x id and name if it is a named one, s if
 * that is a window of sessions, v value if it is a literal, or the values of a set of them, of a pivot or of a sketch, j
 * Java's version if the result depends on it. A column that was written before is @ and its id.
 */
public class PlanWriter {
    /** An answer longer than py4j's buffer of 8192 bytes costs 40 ms, because TCP delays an acknowledgement. */
    private static final int PIECE_CHARACTERS = 8000;

    private static final String[] SETTINGS = {
        "spark.sql.caseSensitive", "spark.sql.columnNameOfCorruptRecord", "spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles",
        "spark.sql.jsonGenerator.ignoreNullFields", "spark.sql.legacy.castComplexTypesToString.enabled",
        "spark.sql.legacy.timeParserPolicy",
        "spark.sql.mapKeyDedupPolicy", "spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.fieldId.read.enabled",
        "spark.sql.parquet.int96RebaseModeInRead", "spark.sql.parquet.int96TimestampConversion", "spark.sql.session.timeZone",
        "spark.sql.sources.binaryFile.maxLength",
    };

    private final PlanExpressions expressions = new PlanExpressions();

    /**
     * The plan of a query, as deflated JSON in base 64: a String, or a List of them if it is long. Is it about an action
     * that collects its rows, and is that about to run?
     */
    public Object write(Object queryExecution, boolean collects, boolean runs) throws Exception {
        QueryExecution query = (QueryExecution) queryExecution;
        return written(query.sparkSession(), query.optimizedPlan(), new Listings(collects ? query : null, runs));
    }

    /** The settings by which files are reached, as JSON. */
    public String storage(Configuration settings) throws Exception {
        StringBuilder out = new StringBuilder("{");
        PlanFiles.storage(out, settings);
        return out.append('}').toString();
    }

    /** The same for a plan that a session is about to plan physically; null: the active one. */
    public Object writePlan(SparkSession session, LogicalPlan plan) throws Exception {
        return written(session == null ? (SparkSession) SparkSession.active() : session, plan, new Listings(null, false));
    }

    private Object written(SparkSession session, LogicalPlan plan, Listings listings) throws Exception {
        StringBuilder out = new StringBuilder(1 << 14);
        out.append("{\"settings\":{");
        for (int i = 0; i < SETTINGS.length; i++) {
            out.append(i == 0 ? "" : ",");
            Json.text(out, SETTINGS[i]);
            out.append(':');
            Json.text(out, session.sessionState().conf().getConfString(SETTINGS[i]));
        }
        out.append("},\"streaming\":").append(plan.isStreaming()).append(",\"plan\":");
        new PlanNodes(expressions, listings).plan(out, plan);
        out.append('}');
        return pieces(pack(out.toString()));
    }

    /**
     * The output columns of a part of the plan, and its sources by class and size in bytes, in the form of write.
     * A part is named by the way to it from the root: the numbers of children, joined by dots.
     */
    public Object describe(Object queryExecution, String path) throws Exception {
        return describePart(((QueryExecution) queryExecution).optimizedPlan(), path);
    }

    /** The same for a plan that is about to be planned physically. */
    public Object describePart(LogicalPlan plan, String path) throws Exception {
        LogicalPlan part = part(plan, path);
        StringBuilder out = new StringBuilder(1 << 10);
        out.append("{\"sources\":[");
        scala.collection.Iterator sources = part.collectLeaves().iterator();
        while (sources.hasNext()) {
            LogicalPlan source = (LogicalPlan) sources.next();
            out.append('[');
            Json.text(out, source.getClass().getName());
            out.append(',').append(source.stats().sizeInBytes().toString()).append(']');
            out.append(sources.hasNext() ? "," : "");
        }
        out.append("],\"output\":");
        new PlanNodes(expressions, new Listings(null, false)).sequence(out, part.output().iterator());
        out.append('}');
        return pieces(pack(out.toString()));
    }

    /** A part of the optimized plan as a separate query. */
    public Object query(Object queryExecution, String path) {
        QueryExecution query = (QueryExecution) queryExecution;
        return Dataset.ofRows(query.sparkSession(), part(query.optimizedPlan(), path));
    }

    /** The rules of a time zone, in the text of relations/zone.py; null if there is no such zone. */
    public String zone(String name) {
        return TimeZones.zone(name);
    }

    private static LogicalPlan part(LogicalPlan plan, String path) {
        TreeNode part = plan;
        String[] steps = path.split("\\.");
        for (int i = 0; i < steps.length; i++) {
            if (!steps[i].isEmpty()) {
                part = (TreeNode) part.children().apply(Integer.parseInt(steps[i]));
            }
        }
        return (LogicalPlan) part;
    }

    private static String pack(String json) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DeflaterOutputStream deflated = new DeflaterOutputStream(bytes, new Deflater(3));
        deflated.write(json.getBytes(StandardCharsets.US_ASCII));
        deflated.close();
        return Base64.getEncoder().encodeToString(bytes.toByteArray());
    }

    private static Object pieces(String packed) {
        if (packed.length() <= PIECE_CHARACTERS) {
            return packed;
        }
        List pieces = new ArrayList();
        for (int from = 0; from < packed.length(); from += PIECE_CHARACTERS) {
            pieces.add(packed.substring(from, Math.min(packed.length(), from + PIECE_CHARACTERS)));
        }
        return pieces;
    }
}
