package wallaby;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * What tables of Delta Lake and Iceberg say of themselves: their columns, and the files of the snapshot that Spark would read.
 *
 * Their classes are in jars that most sessions do not have, so they are looked up by their names, here and nowhere else. A
 * version that does not have one of them, or of its methods, makes the table one that only Spark reads.
 *
 * Spark compiles this file in the driver with Janino; see PlanWriter.java for what that means.
 */
public class LakeTables {
    private static final String DELTA_FORMAT = "org.apache.spark.sql.delta.DeltaParquetFileFormat";
    /** The indexes of a whole snapshot, or of files that one of Delta's commands has chosen from it. */
    private static final String[] DELTA_INDEXES = {
        "org.apache.spark.sql.delta.files.TahoeLogFileIndex", "org.apache.spark.sql.delta.files.TahoeBatchFileIndex",
        "org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex",
    };
    /** What Delta says of a file with a deletion vector. */
    private static final String DELETED = "row_index_filter_id_encoded";
    private static final String ICEBERG_SCAN = "org.apache.iceberg.spark.source.SparkBatchQueryScan";
    private static final String ICEBERG = "org.apache.iceberg.";
    /** A local property; SparkAbove.java reads it. */
    private static final String BYPASS = "spark.wallaby.bypass";

    // --- Delta Lake ------------------------------------------------------------------------------------

    public static boolean isDelta(HadoopFsRelation relation) {
        return DELTA_FORMAT.equals(relation.fileFormat().getClass().getName());
    }

    /** How the names of columns in files follow from those of the table: none (they are the same), name or id. */
    public static String mapping(HadoopFsRelation relation) throws Exception {
        Object mode = call(relation.fileFormat(), "columnMappingMode");
        return (String) call(mode, "name");
    }

    /** The columns of the table with all that Delta notes of them, as JSON. */
    public static String columns(HadoopFsRelation relation) throws Exception {
        return ((StructType) call(relation.fileFormat(), "referenceSchema")).json();
    }

    /** Why only Spark can tell which rows of a relation's files there are; empty if nothing is against it. */
    public static String against(HadoopFsRelation relation) {
        String index = relation.location().getClass().getName();
        for (int i = 0; i < DELTA_INDEXES.length; i++) {
            if (DELTA_INDEXES[i].equals(index)) {
                return "";
            }
        }
        return "the file index " + index.substring(index.lastIndexOf('.') + 1) + " of Delta Lake is not supported";
    }

    public static boolean hasDeletedRows(FileStatusWithMetadata file) {
        return file.metadata().contains(DELETED);
    }

    /** The files of a relation that may have rows for which a filter is true: for Delta with its own figures, else all. */
    public static Seq directories(HadoopFsRelation relation, Filter above) {
        Seq none = (Seq) Nil$.MODULE$;
        if (!isDelta(relation)) {
            return relation.location().listFiles(none, none);
        }
        // Delta asks Spark for its log. Such queries are never worth looking at here.
        SparkContext context = relation.sparkSession().sparkContext();
        String before = context.getLocalProperty(BYPASS);
        context.setLocalProperty(BYPASS, "true");
        try {
            return relation.location().listFiles(none, above == null ? none : conditions(above));
        } finally {
            context.setLocalProperty(BYPASS, before);
        }
    }

    /** The conditions of a filter by which Spark would choose files. */
    private static Seq conditions(Filter filter) {
        List found = new ArrayList();
        List left = new ArrayList();
        left.add(filter.condition());
        while (!left.isEmpty()) {
            Expression next = (Expression) left.remove(0);
            if (next instanceof And) {
                left.add(0, ((And) next).right());
                left.add(0, ((And) next).left());
            } else if (next.deterministic() && !SubqueryExpression$.MODULE$.hasSubquery(next)) {
                found.add(next);
            }
        }
        return scala.jdk.javaapi.CollectionConverters.asScala(found).toSeq();
    }

    // --- Iceberg ---------------------------------------------------------------------------------------

    /** Is this a scan of an Iceberg table, or of one of its snapshots? */
    public static boolean isIceberg(Object scan) {
        return ICEBERG_SCAN.equals(scan.getClass().getName());
    }

    public static String icebergName(Object scan) throws Exception {
        return (String) call(call(scan, "table"), "name");
    }

    /** The columns that a scan reads with their ids, as JSON. */
    public static String icebergColumns(Object scan) throws Exception {
        Class parser = Class.forName(ICEBERG + "SchemaParser", true, scan.getClass().getClassLoader());
        Object schema = call(scan, "projection");
        return (String) parser.getMethod("toJson", new Class[] {schema.getClass()}).invoke(null, new Object[] {schema});
    }

    /** The ids of the columns whose values may be in the table's metadata only: they divide it into partitions. */
    public static List partitionedBy(Object scan) throws Exception {
        List found = new ArrayList();
        Iterator specs = ((Map) call(call(scan, "table"), "specs")).values().iterator();
        while (specs.hasNext()) {
            Iterator fields = ((List) call(specs.next(), "fields")).iterator();
            while (fields.hasNext()) {
                found.add(call(fields.next(), "sourceId"));
            }
        }
        return found;
    }

    /**
     * The files of a scan, each its address and its size; or a text instead: why only Spark can tell which rows there are.
     */
    public static Object icebergFiles(Object scan) throws Exception {
        List found = new ArrayList();
        if (!"".equals(call(scan, "runtimeFiltersDesc"))) {
            return "a filter was found for it while it ran";
        }
        Iterator tasks = ((List) call(scan, "tasks")).iterator();
        while (tasks.hasNext()) {
            Object task = tasks.next();
            if (!Boolean.FALSE.equals(call(task, "isDataTask"))) {
                return "its rows are made of the metadata of another table";
            }
            Object file = call(task, "file");
            if (!((List) call(task, "deletes")).isEmpty()) {
                return "rows of its files are deleted (by a delete file or a deletion vector)";
            }
            if (!"PARQUET".equals(String.valueOf(call(file, "format")))) {
                return "its files have the format " + call(file, "format");
            }
            if (call(file, "keyMetadata") != null) {
                return "its files are encrypted";
            }
            Long size = (Long) call(file, "fileSizeInBytes");
            if (((Long) call(task, "start")).longValue() != 0 || !size.equals(call(task, "length"))) {
                return "only a part of a file is read";
            }
            found.add(new Object[] {call(file, "location"), size});
        }
        return found;
    }

    // --- asking ----------------------------------------------------------------------------------------

    /** The answer of a method without parameters, of whatever class or interface declares it. */
    private static Object call(Object whom, String name) throws Exception {
        Class type = whom.getClass();
        while (type != null) {
            try {
                Method method = type.getDeclaredMethod(name, new Class[0]);
                method.setAccessible(true);
                return method.invoke(whom, new Object[0]);
            } catch (NoSuchMethodException above) {
                type = type.getSuperclass();
            }
        }
        Method method = whom.getClass().getMethod(name, new Class[0]);
        method.setAccessible(true);
        return method.invoke(whom, new Object[0]);
    }
}
