package wallaby;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.ZoneId;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneOffsetTransitionRule;
import java.time.zone.ZoneRules;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.FormatNumber;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.RoundBase;
import org.apache.spark.sql.catalyst.expressions.SessionWindow$;
import org.apache.spark.sql.catalyst.expressions.UnaryMathExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.HyperLogLogPlusPlus;
import org.apache.spark.sql.catalyst.expressions.aggregate.PivotFirst;
import org.apache.spark.sql.catalyst.expressions.json.StructsToJsonEvaluator;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.plans.ExistenceJoin;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.catalyst.util.HyperLogLogPlusPlusHelper$;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Writes an optimized plan down, whole, in one call: a walk from Python costs a round trip per question (a
 * TPC-H plan has a thousand questions), and Spark's own toJSON leaves out what we need most: evaluation modes,
 * files, nullability, the values of literals.
 *
 * Spark compiles this file in the driver with Janino, the compiler that it brings for its own generated code. So
 * it keeps to what Janino knows: no lambdas, no inferred generics, no varargs. It knows nothing of what we can
 * run: every node is written by its class, its children and its plain fields, and Python decides.
 *
 * A node: c class, k children, f fields; an expression also t type, n nullable, m evaluation mode, x id and name
 * if it is a named one, s if that is a window of sessions, v value if it is a literal, or the values of a set of
 * them, of a pivot or of a sketch, j Java's version if the result depends on it; o the output columns of the root, of
 * unions and of generators.
 */
public class PlanWriter {
    /** An answer longer than py4j's buffer of 8192 bytes costs 40 ms, because TCP delays an acknowledgement. */
    private static final int PIECE_CHARACTERS = 8000;

    /** Rows in a plan travel with it to every worker. */
    private static final int LOCAL_ROWS_MAX = 10000;

    private static final String[] SETTINGS = {
        "spark.sql.caseSensitive", "spark.sql.columnNameOfCorruptRecord", "spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles",
        "spark.sql.jsonGenerator.ignoreNullFields", "spark.sql.legacy.castComplexTypesToString.enabled",
        "spark.sql.legacy.timeParserPolicy",
        "spark.sql.mapKeyDedupPolicy", "spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.fieldId.read.enabled",
        "spark.sql.parquet.int96RebaseModeInRead", "spark.sql.parquet.int96TimestampConversion", "spark.sql.session.timeZone",
        "spark.sql.sources.binaryFile.maxLength",
    };

    /** How to get the evaluation mode, by class; NO_MODE if there is none. */
    private final Map modeMethods = Collections.synchronizedMap(new HashMap());

    private static final Method[] NO_MODE = new Method[0];

    /** The filter right above what this thread writes, if there is one. */
    private final ThreadLocal filter = new ThreadLocal();

    /** The plan of a query, as deflated JSON in base 64: a String, or a List of them if it is long. */
    public Object write(Object queryExecution) throws Exception {
        QueryExecution query = (QueryExecution) queryExecution;
        return writePlan(query.sparkSession(), query.optimizedPlan());
    }

    /** The same for a plan that a session is about to plan physically; null: the active one. */
    public Object writePlan(SparkSession session, LogicalPlan plan) throws Exception {
        session = session == null ? (SparkSession) SparkSession.active() : session;
        StringBuilder out = new StringBuilder(1 << 14);
        out.append("{\"settings\":{");
        for (int i = 0; i < SETTINGS.length; i++) {
            out.append(i == 0 ? "" : ",");
            text(out, SETTINGS[i]);
            out.append(':');
            text(out, session.sessionState().conf().getConfString(SETTINGS[i]));
        }
        out.append("},\"streaming\":").append(plan.isStreaming()).append(",\"plan\":");
        filter.set(null);
        node(out, plan, true);
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
            text(out, source.getClass().getName());
            out.append(',').append(source.stats().sizeInBytes().toString()).append(']');
            out.append(sources.hasNext() ? "," : "");
        }
        out.append("],\"output\":");
        sequence(out, part.output().iterator());
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
        ZoneRules rules;
        try {
            ZoneId id = DateTimeUtils.getZoneId(name);
            rules = id.getRules();
        } catch (DateTimeException unknown) {
            return null;
        }
        List transitions = rules.getTransitions();
        StringBuilder out = new StringBuilder(name).append(';');
        if (transitions.isEmpty()) {
            out.append(rules.getOffset(java.time.Instant.EPOCH).getTotalSeconds());
        } else {
            out.append(((ZoneOffsetTransition) transitions.get(0)).getOffsetBefore().getTotalSeconds());
        }
        out.append(';');
        for (int i = 0; i < transitions.size(); i++) {
            ZoneOffsetTransition transition = (ZoneOffsetTransition) transitions.get(i);
            out.append(i == 0 ? "" : ",").append(transition.toEpochSecond());
            out.append(':').append(transition.getOffsetAfter().getTotalSeconds());
        }
        List yearly = rules.getTransitionRules();
        for (int i = 0; i < yearly.size(); i++) {
            yearlyRule(out.append(';'), (ZoneOffsetTransitionRule) yearly.get(i));
        }
        return out.toString();
    }

    private static void yearlyRule(StringBuilder out, ZoneOffsetTransitionRule rule) {
        int second = rule.isMidnightEndOfDay() ? 86400 : rule.getLocalTime().toSecondOfDay();
        int base = 0;
        if (rule.getTimeDefinition() == ZoneOffsetTransitionRule.TimeDefinition.WALL) {
            base = rule.getOffsetBefore().getTotalSeconds();
        } else if (rule.getTimeDefinition() == ZoneOffsetTransitionRule.TimeDefinition.STANDARD) {
            base = rule.getStandardOffset().getTotalSeconds();
        }
        out.append(rule.getMonth().getValue()).append(',').append(rule.getDayOfMonthIndicator()).append(',');
        out.append(rule.getDayOfWeek() == null ? 0 : rule.getDayOfWeek().getValue()).append(',').append(second);
        out.append(',').append(base).append(',').append(rule.getOffsetAfter().getTotalSeconds());
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

    private void node(StringBuilder out, TreeNode node, boolean root) throws Exception {
        if (node instanceof LogicalPlan && !node.children().isEmpty()) {
            filter.set(node instanceof Filter ? node : null);
        }
        out.append("{\"c\":");
        text(out, node.getClass().getName());
        if (node instanceof Expression) {
            expression(out, (Expression) node);
        }
        if (node instanceof LogicalPlan && (root || node instanceof Union || node instanceof Generate)) {
            out.append(",\"o\":");
            sequence(out, ((LogicalPlan) node).output().iterator());
        }
        out.append(",\"k\":");
        sequence(out, node.children().iterator());
        if (node instanceof scala.Product && !(node instanceof Literal) && !(node instanceof AttributeReference)) {
            out.append(",\"f\":{");
            fields(out, (scala.Product) node, node instanceof LogicalPlan);
            out.append('}');
        }
        out.append('}');
        if (node instanceof LogicalPlan) {
            filter.set(null);
        }
    }

    private void expression(StringBuilder out, Expression node) throws Exception {
        if (node.resolved()) {
            try {
                DataType type = node.dataType();
                boolean nullable = node.nullable();
                out.append(",\"t\":");
                text(out, typeText(type));
                out.append(",\"n\":").append(nullable);
            } catch (Exception hasNoType) {
                // Such a node (the frame of a window, say) is written without one. Scala declares no exceptions.
                out.append(",\"n\":true");
            }
        }
        Object mode = mode(node);
        if (mode != null) {
            out.append(",\"m\":");
            text(out, mode.toString());
        }
        if (node instanceof Cast || node instanceof FormatNumber || node instanceof RoundBase
                || node instanceof UnaryMathExpression || node instanceof Invoke) {
            // How Java writes a floating-point number, and how it computes some functions, depends on its version.
            out.append(",\"j\":").append(Runtime.version().feature());
        }
        if (node instanceof NamedExpression && node.resolved()) {
            NamedExpression named = (NamedExpression) node;
            out.append(",\"x\":[").append(named.exprId().id()).append(',');
            text(out, named.name());
            out.append(']');
            if (named.metadata().contains(SessionWindow$.MODULE$.marker())) {
                out.append(",\"s\":true");
            }
        } else if (node instanceof Literal) {
            out.append(",\"v\":");
            literal(out, ((Literal) node).value(), node.dataType());
        } else if (node instanceof HyperLogLogPlusPlus) {
            out.append(",\"v\":");
            sketch(out, ((HyperLogLogPlusPlus) node).relativeSD());
        } else if (node instanceof InSet) {
            out.append(",\"v\":");
            values(out, ((InSet) node).hset().iterator());
        } else if (node instanceof PivotFirst) {
            out.append(",\"v\":");
            pivotValues(out, (PivotFirst) node);
        }
    }

    private static void pivotValues(StringBuilder out, PivotFirst pivot) {
        out.append('[');
        scala.collection.Iterator values = pivot.pivotColumnValues().iterator();
        while (values.hasNext()) {
            literal(out, values.next(), pivot.pivotColumn().dataType());
            out.append(values.hasNext() ? "," : "");
        }
        out.append(']');
    }

    /** The tables of a sketch of some precision, in the text of wallaby.functions.aggregates.sketches; null if there are none. */
    private static void sketch(StringBuilder out, double relativeSD) {
        int bits = (int) Math.ceil(2.0d * Math.log(1.106d / relativeSD) / Math.log(2.0d));
        double[][] estimates = HyperLogLogPlusPlusHelper$.MODULE$.RAW_ESTIMATE_DATA();
        double[][] biases = HyperLogLogPlusPlusHelper$.MODULE$.BIAS_DATA();
        double[] thresholds = HyperLogLogPlusPlusHelper$.MODULE$.THRESHOLDS();
        int row = bits - 4;
        if (row < 0 || row >= estimates.length || row >= thresholds.length) {
            out.append("null");
            return;
        }
        StringBuilder tables = new StringBuilder().append(bits).append(';').append(thresholds[row]).append(';');
        for (int i = 0; i < estimates[row].length; i++) {
            tables.append(i == 0 ? "" : ",").append(estimates[row][i]);
        }
        tables.append(';');
        for (int i = 0; i < biases[row].length; i++) {
            tables.append(i == 0 ? "" : ",").append(biases[row][i]);
        }
        text(out, tables.toString());
    }

    /** The evaluation mode (ANSI, TRY, LEGACY) of an expression that has one, itself or in its context. */
    private Object mode(Expression node) throws Exception {
        Class type = node.getClass();
        Method[] path = (Method[]) modeMethods.get(type);
        if (path == null) {
            path = modePath(type);
            modeMethods.put(type, path);
        }
        Object found = path.length == 0 ? null : node;
        try {
            for (int i = 0; i < path.length; i++) {
                found = path[i].invoke(found, new Object[0]);
            }
        } catch (InvocationTargetException failed) {
            return "UNKNOWN";
        }
        return found;
    }

    private static Method[] modePath(Class type) {
        Method own = method(type, "evalMode");
        if (own != null) {
            return new Method[] {own};
        }
        Method context = method(type, "evalContext");
        Method inner = context == null ? null : method(context.getReturnType(), "evalMode");
        return inner == null ? NO_MODE : new Method[] {context, inner};
    }

    private static Method method(Class type, String name) {
        try {
            return type.getMethod(name, new Class[0]);
        } catch (NoSuchMethodException hasNone) {
            return null;
        }
    }

    /** The fields of a case class. Children are written as such, so they are left out here. */
    private void fields(StringBuilder out, scala.Product product, boolean isPlan) throws Exception {
        boolean first = true;
        for (int i = 0; i < product.productArity(); i++) {
            Object field = product.productElement(i);
            Object part = field instanceof scala.Option && ((scala.Option) field).isDefined() ? ((scala.Option) field).get() : field;
            if (part instanceof scala.collection.Seq && !((scala.collection.Seq) part).isEmpty()) {
                part = ((scala.collection.Seq) part).head();
            }
            if (isPlan ? part instanceof LogicalPlan : part instanceof Expression || part instanceof scala.Tuple2) {
                continue;
            }
            if (product instanceof InSet && part instanceof scala.collection.Set) {
                continue;
            }
            out.append(first ? "" : ",");
            first = false;
            text(out, product.productElementName(i));
            out.append(':');
            if (product instanceof LocalRelation && product.productElementName(i).equals("data")) {
                localRows(out, (LocalRelation) product);
            } else {
                any(out, field);
            }
        }
    }

    /** The rows that stand in the plan itself, each a list of values; null if they are many. */
    private void localRows(StringBuilder out, LocalRelation relation) {
        if (relation.data().size() > LOCAL_ROWS_MAX) {
            out.append("null");
            return;
        }
        out.append('[');
        scala.collection.Iterator rows = relation.data().iterator();
        while (rows.hasNext()) {
            InternalRow row = (InternalRow) rows.next();
            out.append('[');
            for (int i = 0; i < relation.output().size(); i++) {
                out.append(i == 0 ? "" : ",");
                DataType type = ((NamedExpression) relation.output().apply(i)).toAttribute().dataType();
                literal(out, row.isNullAt(i) ? null : row.get(i, type), type);
            }
            out.append(rows.hasNext() ? "]," : "]");
        }
        out.append(']');
    }

    private void any(StringBuilder out, Object value) throws Exception {
        if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long) {
            out.append(value);
        } else if (value instanceof String || value instanceof Character || value instanceof Enum) {
            text(out, value.toString());
        } else if (value instanceof TreeNode) {
            node(out, (TreeNode) value, false);
        } else if (value instanceof scala.Option) {
            any(out, ((scala.Option) value).isEmpty() ? null : ((scala.Option) value).get());
        } else if (value instanceof ExprId) {
            out.append(((ExprId) value).id());
        } else if (value instanceof DataType) {
            text(out, typeText((DataType) value));
        } else if (value instanceof Class) {
            text(out, ((Class) value).getName());
        } else if (value instanceof UTF8String) {
            value(out, value);
        } else if (value instanceof HadoopFsRelation) {
            fileRelation(out, (HadoopFsRelation) value);
        } else if (LakeTables.isIceberg(value)) {
            icebergScan(out, value);
        } else if (value instanceof ExistenceJoin) {
            out.append("{\"opaque\":\"ExistenceJoin\",\"exists\":");
            node(out, ((ExistenceJoin) value).exists(), false);
            out.append('}');
        } else if (value instanceof scala.collection.Seq) {
            sequence(out, ((scala.collection.Seq) value).iterator());
        } else {
            out.append("{\"opaque\":");
            text(out, value.getClass().getName());
            out.append('}');
        }
    }

    private void sequence(StringBuilder out, scala.collection.Iterator items) throws Exception {
        out.append('[');
        String separator = "";
        boolean more = true;
        while (more && items.hasNext()) {
            out.append(separator);
            int from = out.length();
            any(out, items.next());
            separator = ",";
            // Rows and the like, of which there may be millions: only one is written.
            more = out.indexOf("{\"opaque\"", from) != from;
        }
        out.append(']');
    }

    private void fileRelation(StringBuilder out, HadoopFsRelation relation) throws Exception {
        out.append("{\"c\":");
        text(out, relation.getClass().getName());
        out.append(",\"format\":");
        text(out, relation.fileFormat().getClass().getName());
        out.append(",\"schema\":").append(ascii(relation.dataSchema().json()));
        out.append(",\"partitions\":[");
        StructField[] partitions = relation.partitionSchema().fields();
        for (int i = 0; i < partitions.length; i++) {
            out.append(i == 0 ? "[" : ",[");
            text(out, partitions[i].name());
            out.append(',');
            text(out, partitions[i].dataType().catalogString());
            out.append(']');
        }
        out.append(']');
        out.append(",\"options\":{");
        scala.collection.Iterator options = relation.options().iterator();
        while (options.hasNext()) {
            scala.Tuple2 option = (scala.Tuple2) options.next();
            text(out, option._1().toString());
            out.append(':');
            text(out, String.valueOf(option._2()));
            out.append(options.hasNext() ? "," : "");
        }
        out.append("},\"directories\":[");
        StringBuilder against = new StringBuilder();
        String facts = LakeTables.isDelta(relation) ? deltaFacts(relation, against) : "";
        boolean remote = against.length() == 0 && directories(out, relation, against);
        out.append(']').append(facts).append(",\"against\":");
        text(out, against.toString());
        out.append(",\"storage\":{");
        if (remote) {
            storage(out, relation);
        }
        out.append("}}");
    }

    /** How a table of Delta's names the columns of its files; `against` gets what keeps us from reading them. */
    private static String deltaFacts(HadoopFsRelation relation, StringBuilder against) throws Exception {
        StringBuilder out = new StringBuilder(",\"delta\":{\"mapping\":");
        try {
            against.append(LakeTables.against(relation));
            text(out, LakeTables.mapping(relation));
            return out.append(",\"columns\":").append(ascii(LakeTables.columns(relation))).append('}').toString();
        } catch (ReflectiveOperationException unknown) {
            against.append("this version of Delta Lake is not known (").append(unknown).append(')');
            return "";
        }
    }

    /** The files of a scan of Iceberg's, or what is against reading them here. */
    private static void icebergScan(StringBuilder out, Object scan) throws Exception {
        String against = "";
        StringBuilder said = new StringBuilder();
        try {
            said.append(",\"name\":");
            text(said, LakeTables.icebergName(scan));
            said.append(",\"schema\":").append(ascii(LakeTables.icebergColumns(scan)));
            said.append(",\"partitioned\":").append(LakeTables.partitionedBy(scan)).append(",\"files\":[");
            Object found = LakeTables.icebergFiles(scan);
            if (found instanceof String) {
                against = (String) found;
            } else {
                icebergFiles(said, (List) found);
            }
            said.append(']');
        } catch (ReflectiveOperationException unknown) {
            against = "this version of Iceberg is not known (" + unknown + ")";
        }
        out.append("{\"c\":");
        text(out, scan.getClass().getName());
        out.append(",\"against\":");
        text(out, against);
        out.append(against.isEmpty() ? said.toString() : "").append('}');
    }

    private static void icebergFiles(StringBuilder out, List files) {
        for (int i = 0; i < files.size(); i++) {
            Object[] file = (Object[]) files.get(i);
            URI uri = new Path((String) file[0]).toUri();
            out.append(i == 0 ? "[" : ",[");
            text(out, uri.getScheme() == null ? "" : uri.getScheme());
            out.append(',');
            text(out, uri.getPath());
            out.append(',').append(file[1]).append(']');
        }
    }

    /** The settings by which this session reaches files, without Hadoop's own defaults; and the user. */
    private static void storage(StringBuilder out, HadoopFsRelation relation) throws Exception {
        Configuration settings = relation.sparkSession().sessionState().newHadoopConf();
        text(out, "user");
        out.append(':');
        text(out, UserGroupInformation.getCurrentUser().getShortUserName());
        java.util.Iterator entries = settings.iterator();
        while (entries.hasNext()) {
            String name = (String) ((Map.Entry) entries.next()).getKey();
            String[] sources = settings.getPropertySources(name);
            boolean usual = sources != null && sources.length == 1 && sources[0].equals("core-default.xml");
            boolean wanted = name.startsWith("fs.s3a.") || name.startsWith("fs.hdfs.") || name.startsWith("dfs.")
                || name.startsWith("hadoop.security.");
            if (wanted && !usual && settings.get(name) != null) {
                out.append(',');
                text(out, name);
                out.append(':');
                text(out, settings.get(name));
            }
        }
    }

    /**
     * Every directory that Spark lists: the values of the partition columns there, and its files. Are some of them on
     * no local disk? `against` gets what keeps us from reading them.
     */
    private boolean directories(StringBuilder out, HadoopFsRelation relation, StringBuilder against) throws Exception {
        Filter above = (Filter) filter.get();
        scala.collection.Iterator directories = LakeTables.directories(relation, above).iterator();
        StructField[] partitions = relation.partitionSchema().fields();
        boolean remote = false;
        while (directories.hasNext()) {
            PartitionDirectory directory = (PartitionDirectory) directories.next();
            out.append("[[");
            for (int i = 0; i < partitions.length; i++) {
                out.append(i == 0 ? "" : ",");
                value(out, directory.values().get(i, partitions[i].dataType()));
            }
            out.append("],[");
            remote |= files(out, directory.files().iterator(), against);
            out.append(directories.hasNext() ? "]]," : "]]");
        }
        return remote;
    }

    private static boolean files(StringBuilder out, scala.collection.Iterator files, StringBuilder against) {
        boolean remote = false;
        while (files.hasNext()) {
            FileStatusWithMetadata listed = (FileStatusWithMetadata) files.next();
            FileStatus file = listed.fileStatus();
            if (against.length() == 0 && LakeTables.hasDeletedRows(listed)) {
                against.append("rows of its files are deleted (by a deletion vector)");
            }
            URI uri = file.getPath().toUri();
            remote |= uri.getScheme() != null && !uri.getScheme().equals("file");
            out.append('[');
            text(out, uri.getScheme() == null ? "" : uri.getScheme());
            out.append(',');
            text(out, uri.getPath());
            out.append(',').append(file.getLen()).append(',').append(file.getModificationTime()).append(',');
            text(out, uri.getAuthority() == null ? "" : uri.getAuthority());
            out.append(files.hasNext() ? "]," : "]");
        }
        return remote;
    }

    /** A constant: for an array its values, for a struct those of its fields, for a map its keys and its values. */
    private static void literal(StringBuilder out, Object value, DataType type) {
        if (value instanceof ArrayData && type instanceof ArrayType) {
            out.append("{\"array\":");
            items(out, (ArrayData) value, ((ArrayType) type).elementType());
            out.append('}');
        } else if (value instanceof MapData && type instanceof MapType) {
            out.append("{\"map\":[");
            items(out, ((MapData) value).keyArray(), ((MapType) type).keyType());
            out.append(',');
            items(out, ((MapData) value).valueArray(), ((MapType) type).valueType());
            out.append("]}");
        } else if (value instanceof InternalRow && type instanceof StructType) {
            StructField[] fields = ((StructType) type).fields();
            out.append("{\"struct\":[");
            for (int i = 0; i < fields.length; i++) {
                out.append(i == 0 ? "" : ",");
                DataType inner = fields[i].dataType();
                literal(out, ((InternalRow) value).isNullAt(i) ? null : ((InternalRow) value).get(i, inner), inner);
            }
            out.append("]}");
        } else {
            value(out, value);
        }
    }

    /** The values of an array; null if it is too long to travel with a plan. */
    private static void items(StringBuilder out, ArrayData array, DataType inner) {
        if (array.numElements() > LOCAL_ROWS_MAX) {
            out.append("null");
            return;
        }
        out.append('[');
        for (int i = 0; i < array.numElements(); i++) {
            out.append(i == 0 ? "" : ",");
            literal(out, array.isNullAt(i) ? null : array.get(i, inner), inner);
        }
        out.append(']');
    }

    /** Spark's text for a type, but the names of fields are quoted where they could be mistaken. */
    private static String typeText(DataType type) {
        if (type instanceof ArrayType) {
            return "array<" + typeText(((ArrayType) type).elementType()) + ">";
        }
        if (type instanceof MapType) {
            return "map<" + typeText(((MapType) type).keyType()) + "," + typeText(((MapType) type).valueType()) + ">";
        }
        if (!(type instanceof StructType)) {
            return type.catalogString();
        }
        StringBuilder out = new StringBuilder("struct<");
        StructField[] fields = ((StructType) type).fields();
        for (int i = 0; i < fields.length; i++) {
            String name = fields[i].name();
            String quoted = name.matches("[a-zA-Z0-9_]+") ? name : "`" + name.replace("`", "``") + "`";
            out.append(i == 0 ? "" : ",").append(quoted).append(':').append(typeText(fields[i].dataType()));
        }
        return out.append('>').toString();
    }

    private void values(StringBuilder out, scala.collection.Iterator values) {
        out.append('[');
        while (values.hasNext()) {
            value(out, values.next());
            out.append(values.hasNext() ? "," : "");
        }
        out.append(']');
    }

    /** A value as Catalyst stores it: dates are days and timestamps microseconds since 1970. */
    private static void value(StringBuilder out, Object value) {
        if (value == null || value instanceof Boolean || value instanceof Byte || value instanceof Short
                || value instanceof Integer || value instanceof Long) {
            out.append(value);
        } else if (value instanceof Float || value instanceof Double) {
            tagged(out, "float", Double.toString(((Number) value).doubleValue()));
        } else if (value instanceof Decimal) {
            BigDecimal number = ((Decimal) value).toJavaBigDecimal();
            tagged(out, "decimal", number.toPlainString());
        } else if (value instanceof UTF8String && UTF8String.fromString(value.toString()).equals(value)) {
            tagged(out, "string", value.toString());
        } else if (value instanceof byte[]) {
            tagged(out, "binary", Base64.getEncoder().encodeToString((byte[]) value));
        } else if (value instanceof StructsToJsonEvaluator && !((StructsToJsonEvaluator) value).options().isEmpty()) {
            tagged(out, "opaque", "StructsToJsonWithOptions");
        } else {
            tagged(out, "opaque", value.getClass().getName());
        }
    }

    private static void tagged(StringBuilder out, String tag, String value) {
        out.append('{');
        text(out, tag);
        out.append(':');
        text(out, value);
        out.append('}');
    }

    private static void text(StringBuilder out, String value) {
        out.append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20 || c > 0x7e) {
                escape(out, c);
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    private static String ascii(String json) {
        StringBuilder out = new StringBuilder(json.length());
        for (int i = 0; i < json.length(); i++) {
            char c = json.charAt(i);
            if (c > 0x7e) {
                escape(out, c);
            } else {
                out.append(c);
            }
        }
        return out.toString();
    }

    private static void escape(StringBuilder out, char c) {
        out.append("\\u").append(Integer.toHexString(0x10000 | c).substring(1));
    }
}
