package wallaby;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.internal.io.HadoopMapReduceCommitProtocol;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.command.DataWritingCommand;
import org.apache.spark.sql.execution.command.DataWritingCommandExec;
import org.apache.spark.sql.execution.datasources.BasicWriteJobStatsTracker;
import org.apache.spark.sql.execution.datasources.BasicWriteTaskStats;
import org.apache.spark.sql.execution.datasources.ExecutedWriteSummary;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.WriteFiles;
import org.apache.spark.sql.execution.datasources.WriteFilesExec;
import org.apache.spark.sql.execution.datasources.WriteFilesSpec;
import org.apache.spark.sql.execution.datasources.WriteJobDescription;
import org.apache.spark.sql.execution.datasources.WriteTaskResult;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.collection.immutable.Set$;

/**
 * Spark writes whose files the TaskManagers write.
 *
 * Spark's command decides what a mode means, when to commit, and tells the catalog. In its commit, Python publishes the files
 * that the query has made (KeptTables.java).
 */
public class KeptWrites implements KeptTables.Told {
    private static final String COMMITTER = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol";
    private static final String FORMAT = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat";
    /** A local property: the write of this thread has a key, so only TaskManagers may write. */
    private static final String KEY = "spark.wallaby.write.key";

    private final KeptPlans plans;
    /** Has a run's rows written and published: is asked with a word and facts, and answers with facts or with an error. */
    private Function python;

    public KeptWrites(KeptPlans plans) {
        this.plans = plans;
    }

    public void connect(Function python) {
        this.python = python;
    }

    /** The part of a plan that a write takes rows from, without the order that Spark's writers need; null if not ours. */
    public static LogicalPlan written(LogicalPlan plan) {
        if (!(plan instanceof WriteFiles) || !((WriteFiles) plan).bucketSpec().isEmpty()
            || !FORMAT.equals(((WriteFiles) plan).fileFormat().getClass().getName())) {
            return null;
        }
        LogicalPlan found = (LogicalPlan) ((WriteFiles) plan).child();
        return isForWriter(found, (WriteFiles) plan) ? (LogicalPlan) found.children().head() : found;
    }

    /** Is this a sort by partitions, which a writer of Spark's needs? Any other order of rows in files is the user's. */
    private static boolean isForWriter(LogicalPlan plan, WriteFiles write) {
        if (!(plan instanceof Sort) || ((Sort) plan).global()) {
            return false;
        }
        scala.collection.Iterator order = ((Sort) plan).order().iterator();
        while (order.hasNext()) {
            Expression key = (Expression) ((Expression) order.next()).children().head();
            boolean isPartition = false;
            scala.collection.Iterator columns = write.partitionColumns().iterator();
            while (columns.hasNext()) {
                isPartition |= ((Attribute) columns.next()).semanticEquals(key);
            }
            if (!isPartition) {
                return false;
            }
        }
        return true;
    }

    /** The node that writes the rows of a run. */
    public SparkPlan writer(PartRun run, WriteFiles plan, LogicalPlan written, SparkPlan child) {
        Map columns = new HashMap();
        for (int at = 0; at < written.output().size(); at++) {
            columns.put(((Attribute) written.output().apply(at)).exprId(), Integer.valueOf(at));
        }
        return new Writer(child, plan.fileFormat(), plan.partitionColumns(), plan.bucketSpec(), plan.options(),
            plan.staticPartitions(), this, run, columns, null);
    }

    /** A command of Spark's over such a node, which lets the table be as it is until its commit. */
    public SparkPlan command(InsertIntoHadoopFsRelationCommand command, SparkPlan writer) {
        KeptTables.TablePath table = new KeptTables.TablePath(command.outputPath());
        Object[] parts = new Object[command.productArity()];
        for (int at = 0; at < parts.length; at++) {
            Object part = command.productElement(at);
            parts[at] = part == command.outputPath() ? table : part;
        }
        DataWritingCommand copy = (DataWritingCommand) command.makeCopy(parts);
        return new DataWritingCommandExec(copy, ((Writer) writer).to(table));
    }

    /** A node that writes the rows of a run. */
    public static class Writer extends WriteFilesExec {
        private final transient KeptWrites writes;
        private final transient PartRun run;
        /** The positions of columns in the rows of the run, by column id. */
        private final transient Map columns;
        /** Where it writes, if Spark's command lets the table be as it is; else null. */
        private final transient KeptTables.TablePath table;

        /** Our own parameters come last: Spark copies nodes with the parameters of WriteFilesExec and `otherCopyArgs`. */
        public Writer(
            SparkPlan child, FileFormat format, Seq partitionColumns, Option bucketSpec,
            scala.collection.immutable.Map options, scala.collection.immutable.Map staticPartitions,
            KeptWrites writes, PartRun run, Map columns, KeptTables.TablePath table) {
            super(child, format, partitionColumns, bucketSpec, options, staticPartitions);
            this.writes = writes;
            this.run = run;
            this.columns = columns;
            this.table = table;
        }

        Writer to(KeptTables.TablePath place) {
            return new Writer(child(), fileFormat(), partitionColumns(), bucketSpec(), options(), staticPartitions(), writes,
                run, columns, place);
        }

        public String nodeName() {
            return "WallabyWrite";
        }

        public WriteFilesExec withNewChildInternal(SparkPlan child) {
            return new Writer(child, fileFormat(), partitionColumns(), bucketSpec(), options(), staticPartitions(), writes,
                run, columns, table);
        }

        public Seq otherCopyArgs() {
            List arguments = new ArrayList();
            arguments.add(writes);
            arguments.add(run);
            arguments.add(columns);
            arguments.add(table);
            return seq(arguments);
        }

        public RDD doExecuteWrite(WriteFilesSpec spec) {
            List answer = null;
            try {
                answer = writes.files(this, spec);
                if (answer == null) {
                    writes.refuseKey();
                    if (table != null) {
                        table.leaveToSpark(spec);
                    }
                }
            } catch (java.io.IOException unknown) {
                throw new java.io.UncheckedIOException(unknown);
            }
            if (answer == null) {
                return super.doExecuteWrite(spec);
            }
            show(child(), answer);
            return writes.committed(spec, answer);
        }

        /** Show the figures of the query at the node of its part, which Spark does not execute. */
        private static void show(SparkPlan node, List answer) {
            if (node instanceof KeptPlans.Exec) {
                ((KeptPlans.Exec) node).tell(((List) answer.get(2)).toArray());
            }
            scala.collection.Iterator children = node.children().iterator();
            while (children.hasNext()) {
                show((SparkPlan) children.next(), answer);
            }
        }
    }

    /** Will one step publish the files of a write, and the files; or null if Spark has to write them. */
    private List files(Writer writer, WriteFilesSpec spec) {
        WriteJobDescription job = spec.description();
        Configuration conf = job.serializableHadoopConf().value();
        if (writer.table == null || !writer.table.isHeld() || !COMMITTER.equals(spec.committer().getClass().getName())
            || !KeptTables.isSparks(spec) || !job.customPartitionLocations().isEmpty() || job.statsTrackers().size() != 1
            || !(job.statsTrackers().head() instanceof BasicWriteJobStatsTracker)
            || SparkVersions.overwritesPartitions(spec.committer()) == null || !namesInOurZone(job)) {
            return null;
        }
        List question = new ArrayList();
        question.add("write");
        question.add(writer.run);
        question.add(writer.table.root());
        question.add(((HadoopMapReduceCommitProtocol) spec.committer()).stagingDir().toUri().getPath());
        question.add(job.uuid());
        question.add(DataTypeUtils.fromAttributes(job.dataColumns()).json());
        List names = new ArrayList();
        List places = new ArrayList();
        scala.collection.Iterator each = ((Seq) job.dataColumns().appendedAll(job.partitionColumns())).iterator();
        while (each.hasNext()) {
            Attribute column = (Attribute) each.next();
            places.add(writer.columns.get(column.exprId()));
        }
        each = job.partitionColumns().iterator();
        while (each.hasNext()) {
            names.add(((Attribute) each.next()).name());
        }
        question.add(names);
        question.add(places);
        question.add(Long.valueOf(job.maxRecordsPerFile()));
        question.add(SparkVersions.overwritesPartitions(spec.committer()));
        question.add(conf);
        question.add(key());
        question.add(Boolean.valueOf(writer.table.existed()));
        question.add(writer.table.deleted());
        return places.contains(null) ? null : answered(question);
    }

    /** Are the names of partitions those of the session's time zone? A write may have one of its own. */
    private static boolean namesInOurZone(WriteJobDescription job) {
        SparkSession session = (SparkSession) SparkSession.active();
        return job.partitionColumns().isEmpty() || job.timeZoneId().equals(session.sessionState().conf().sessionLocalTimeZone());
    }

    /** What Python answers. */
    private List answered(List question) {
        List answer = (List) Calls.apply(plans.rdds.context(), python, question);
        if (answer != null && !answer.isEmpty() && answer.get(0) instanceof String) {
            throw new KeptPlans.WallabyException((String) answer.get(0), (String) answer.get(1), (String) answer.get(2));
        }
        return answer;
    }

    /** Tell Python what becomes of a write. */
    public void tell(String word, String job) {
        List said = new ArrayList();
        said.add(word);
        said.add(job);
        answered(said);
    }

    private String key() {
        return plans.rdds.context().getLocalProperty(KEY);
    }

    /** Called before Spark itself writes: it must not, if this thread's write has a key. */
    public void refuseKey() {
        if (key() != null) {
            tell("refuse", key());
        }
    }

    /** What a task of Spark's would tell that had written these files, but for what there is to move: Python does that. */
    private RDD committed(WriteFilesSpec spec, List answer) {
        List files = (List) answer.get(1);
        KeptTables.commitHere(spec, this, ((Boolean) answer.get(0)).booleanValue());
        Set partitions = new HashSet();
        long rows = 0;
        long bytes = 0;
        for (int at = 0; at < files.size(); at++) {
            List file = (List) files.get(at);
            String name = (String) file.get(0);
            rows += ((Number) file.get(1)).longValue();
            bytes += ((Number) file.get(2)).longValue();
            if (name.indexOf('/') >= 0) {
                partitions.add(name.substring(0, name.lastIndexOf('/')));
            }
        }
        List stats = new ArrayList();
        List partitionRows = new ArrayList();
        for (int at = 0; at < partitions.size(); at++) {
            partitionRows.add(new GenericInternalRow(new Object[] {Integer.valueOf(at)}));
        }
        stats.add(new BasicWriteTaskStats(seq(partitionRows), files.size(), bytes, rows));
        scala.collection.immutable.Set paths = (scala.collection.immutable.Set) Set$.MODULE$.from(seq(new ArrayList(partitions)));
        Object moves = new Tuple2(Map$.MODULE$.empty(), Set$.MODULE$.empty());
        List messages = new ArrayList();
        messages.add(new WriteTaskResult(
            new FileCommitProtocol.TaskCommitMessage(moves), new ExecutedWriteSummary(paths, seq(stats))));
        return new JavaSparkContext(plans.rdds.context()).parallelize(messages, 1).rdd();
    }

    private static Seq seq(List list) {
        return scala.jdk.javaapi.CollectionConverters.asScala(list).toSeq();
    }
}
